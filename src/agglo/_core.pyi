from typing import Any

def __getattr__(name: str) -> Any: ...  # the callers name the types that come back
