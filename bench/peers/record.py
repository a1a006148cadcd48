"""What handlers wrote down, and whether it is right. A record is a file of numbers, three for each message that was
handled: its number, when its handling began and when it ended. They are doubles of this machine."""
import array

from parts.program import Wrong


def read(path):
    """[(n, start, end)], in the order of the file."""
    numbers = array.array("d")
    with open(path, "rb") as f:
        numbers.frombytes(f.read())
    if len(numbers) % 3:
        raise Wrong(f"the record has {len(numbers)} numbers, which is not a multiple of three")
    return list(zip(map(int, numbers[0::3]), numbers[1::3], numbers[2::3]))


def check(messages, rows, ordered, keys):
    """Each of the messages 1 to rows once; and, if ordered, those of a key in the order of their numbers and never
    two at once. The key of a message is its number modulo `keys`."""
    seen = bytearray(rows + 1)
    for n, _, _ in messages:
        if not 1 <= n <= rows:
            raise Wrong(f"message {n} was handled, which is none of the {rows}")
        if seen[n]:
            raise Wrong(f"message {n} was handled twice")
        seen[n] = 1
    if len(messages) != rows:
        lost = seen.index(0, 1)
        raise Wrong(f"{rows - len(messages)} of {rows} messages were not handled, such as {lost}")
    if ordered:
        check_order(messages, keys)


def check_order(messages, keys):
    last = {}  # key: the message before, and when it ended
    for n, start, end in sorted(messages, key=lambda m: m[1:]):
        before, ended = last.get(n % keys, (0, 0))
        if n < before:
            raise Wrong(f"message {n} of key {n % keys} was handled after message {before}")
        if start < ended:
            raise Wrong(f"messages {before} and {n} of key {n % keys} were handled at the same time")
        last[n % keys] = n, end


def seconds(messages, started, ended):
    """From when the workers had started, or the first message if that was earlier, to when all was done."""
    return max(ended - min(started, min(m[1] for m in messages)), 0.001)
