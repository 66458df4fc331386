from hypothesis import settings

# No wall-clock bounds: the machine may be busy with something else.
settings.register_profile("agglo", deadline=None, print_blob=True)
settings.load_profile("agglo")
