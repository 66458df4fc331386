import pytest

from agglo.outputs import replacing_all


def test_several_files_appear_together(tmp_path):
    names = [tmp_path / "a", tmp_path / "b"]
    with replacing_all(names) as partials:
        for partial in partials:
            partial.write_text("new")
        assert not any(name.exists() for name in names)
    assert [name.read_text() for name in names] == ["new", "new"]
    assert sorted(tmp_path.iterdir()) == names


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_if_one_cannot_be_written_all_stay_as_they_were(tmp_path, error):
    names = [tmp_path / "a", tmp_path / "b"]
    names[0].write_text("old")

    def failing():
        with replacing_all(names) as partials:
            partials[0].write_text("new")
            raise error

    with pytest.raises(type(error)):
        failing()
    assert names[0].read_text() == "old"
    assert list(tmp_path.iterdir()) == names[:1]


def test_a_file_that_was_not_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), replacing_all([tmp_path / "a", tmp_path / "b"]) as partials:
        partials[0].touch()
    assert list(tmp_path.iterdir()) == []
