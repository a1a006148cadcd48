"""The checker under test: it must refuse every kind of bad history, and an empty one."""
import json

import pytest

from checker import BadHistory, Record, check, delivery, message, read_sink


def line(id, epoch=1, payload='{"n":1}', topic="orders", key="k", worker="n/1", attempt=1, member="payload"):
    return (f'{{"id":{id},"topic":{json.dumps(topic)},"key":{json.dumps(key)},"type":"","{member}":{payload},'
            f'"headers":{{}},"attempt":{attempt},"worker":"{worker}","epoch":{epoch}}}')


def record(*lines):
    return Record(delivery(i + 1, text) for i, text in enumerate(lines))


def pushed(n):
    return {id: message("orders", "k", b'{"n":1}') for id in range(1, n + 1)}


def refused(match, *args, **kw):
    with pytest.raises(BadHistory, match=match) as e:
        check(*args, **kw)
    return str(e.value)


def test_a_good_history_is_summed_up():
    got = check(pushed(3), record(line(2), line(1, worker="n/2"), line(3)))
    assert (got.committed, got.delivered, got.lines, got.duplicates, got.torn) == (3, 3, 3, 0, 0)
    assert got.workers == ["n/1", "n/2"]
    assert "3 delivered in 3 lines by 2 workers, 0 duplicates" in str(got)


def test_an_empty_history_proves_nothing():
    refused("least: 0 messages", {}, Record())
    refused("least: 0 messages", {}, Record(), least=0)


def test_too_short_a_history_proves_nothing():
    refused("least: 2 messages", pushed(2), record(line(1), line(2)), least=3)


def test_loss():
    text = refused("loss: message 2 never arrived", pushed(3), record(line(1), line(3)))
    assert "message 1" not in text and "message 3" not in text
    refused("loss: message 1 never arrived", pushed(9), Record())
    assert "4 more of this kind" in refused("loss", pushed(10), record(line(1)))


def test_a_dead_letter_is_no_loss():
    got = check(pushed(3), record(line(1), line(3)), dead={2})
    assert got.dead == 1
    refused("loss: message 3", pushed(3), record(line(1)), dead={2})
    refused("dead letter 7 was never committed", pushed(1), record(line(1)), dead={7})


def test_invention():
    refused("line 2 delivers message 2, which was never committed", pushed(1), record(line(1), line(2)))


@pytest.mark.parametrize("text", [
    line(1, payload='{"n":2}'), line(1, payload='{"n": 1}'), line(1, payload='{"n":1.0}'), line(1, payload='""'),
    line(1, payload="null"), line(1, payload='"eyJuIjoxfQ=="'),
    line(1, payload='"eyJuIjoyfQ=="', member="payload_base64")])
def test_another_payload(text):
    refused("line 1: message 1 has another payload", pushed(1), record(text))


def test_another_topic_or_key():
    refused("is orders/k, not mails/k", pushed(1), record(line(1, topic="mails")))
    refused("is orders/k, not orders/None", pushed(1), record(line(1, key=None)))


@pytest.mark.parametrize("payload, text", [
    (b'{"n":1}', line(1)),
    (b'{"n":1}', line(1, payload='"eyJuIjoxfQ=="', member="payload_base64")),
    (b'{\n  "n": 1\r\n}', line(1, payload='{   "n": 1  }')),
    (b'1.000e2', line(1, payload="1.000e2")),
    (b'"text"', line(1, payload='"text"')),
    (b'text', line(1, payload='"text"')),
    ('déjà "vu"\n'.encode(), line(1, payload='"d\\u00e9jà \\"vu\\"\\n"')),
    (b"", line(1, payload='""')),
    (b"\x00\xff", line(1, payload='"AP8="', member="payload_base64"))])
def test_the_same_payload_in_its_forms(payload, text):
    check({1: message("orders", "k", payload)}, record(text))


def test_a_payload_is_found_behind_a_key_that_looks_like_one():
    key = 'x,"payload":7'
    check({1: message("orders", key, b'{"n":1}')}, record(line(1, key=key)))


def test_duplicates_without_a_fault():
    refused("message 1 was delivered 2 times and was 0 times in flight", pushed(1), record(line(1), line(1, 2)))


def test_duplicates_only_of_what_was_in_flight():
    got = check(pushed(2), record(line(1), line(2), line(1, 2)), in_flight=[1])
    assert got.duplicates == 1 and got.most == 2
    refused("message 2 was delivered 2 times", pushed(2), record(line(1), line(2), line(2, 2)), in_flight=[1])


def test_duplicates_only_as_often_as_in_flight():
    thrice = record(line(1), line(1, 2), line(1, 3))
    check(pushed(1), thrice, in_flight=[1, 1])
    refused("message 1 was delivered 3 times and was 1 times in flight", pushed(1), thrice, in_flight=[1])


def test_duplicates_no_more_than_allowed():
    twice = record(line(1), line(2), line(1, 2), line(2, 2))
    check(pushed(2), twice, in_flight=[1, 2], duplicates_max=2)
    refused("duplicates: 2 in all, at most 1", pushed(2), twice, in_flight=[1, 2], duplicates_max=1)


def test_epochs_never_fall():
    refused("message 1 has epoch 5 in line 1 and 4 in line 2", pushed(1), record(line(1, 5), line(1, 4)), in_flight=[1])
    check(pushed(2), record(line(1, 5), line(2, 4)))


def test_epochs_rise_where_the_claim_raises_them():
    same = record(line(1, 5), line(1, 5))
    check(pushed(1), same, in_flight=[1])
    refused("message 1 has epoch 5 in line 1 and 5 in line 2", pushed(1), same, in_flight=[1], fenced=True)


def test_torn_lines_are_counted(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text(line(1) + "\n" + line(2)[:40] + "\n" + line(2) + "\n" + "42\n")
    got = read_sink(path)
    assert [d.id for d in got] == [1, 2] and got.torn == [2, 4]
    refused(r"torn: lines \[2, 4\] are no messages, at most 1", pushed(2), got, torn_max=1)
    assert check(pushed(2), got, torn_max=2).torn == 2


def test_rotated_files_are_one_record(tmp_path):
    (tmp_path / "1").write_text(line(1) + "\n")
    (tmp_path / "2").write_text(line(2) + "\n")
    assert [d.line for d in read_sink(tmp_path / "1", tmp_path / "2")] == [1, 2]


def test_all_that_is_wrong_is_told_at_once():
    text = refused("loss", pushed(3), record(line(1), line(9), line(1)))
    assert all(kind in text for kind in ("loss: message 2", "loss: message 3", "invention", "duplicates: message 1"))
