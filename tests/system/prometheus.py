"""The text format of Prometheus, read strictly: what is not allowed is an assertion that fails."""
import re

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf'({NAME})\{{(.*)\}} (\S+)')
ENDINGS = ('_bucket', '_sum', '_count')


def unescape(text):
    return re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], text)


def labels(text):
    """Pairs, with exactly one comma between any two."""
    found, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, text
        assert match[1] not in found
        found[match[1]] = unescape(match[2])
        at = match.end()
        if at < len(text):
            assert text[at] == ',' and at + 1 < len(text), text
            at += 1
    return found


def family_of(name, kinds):
    for ending in ENDINGS:
        base = name.removesuffix(ending)
        if base != name and kinds.get(base) == 'histogram':
            return base
    return name


def check_histogram(samples):
    """The counts of each series grow with their bounds, and the last is that of all."""
    series = {}
    for name, of, value in samples:
        key = tuple(sorted((k, v) for k, v in of.items() if k != 'le'))
        series.setdefault(key, []).append((name, of.get('le'), value))
    for lines in series.values():
        buckets = [(float(le), value) for name, le, value in lines if name.endswith('_bucket')]
        assert buckets == sorted(buckets)
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
        assert buckets[-1][0] == float('inf')
        count, = (value for name, _, value in lines if name.endswith('_count'))
        assert count == buckets[-1][1]
        assert sum(name.endswith('_sum') for name, _, _ in lines) == 1


def parse(text):
    """{(name, frozenset of labels): value}"""
    assert text.endswith('\n') and '\r' not in text
    kinds, helps, families, seen, last = {}, set(), {}, {}, None
    for line in text[:-1].split('\n'):
        comment = re.fullmatch(rf'# (HELP|TYPE) ({NAME}) (.+)', line)
        if comment and comment[1] == 'HELP':
            assert comment[2] not in helps and comment[2] not in families
            helps.add(comment[2])
        elif comment:
            assert comment[2] not in kinds and comment[2] not in families
            assert comment[3] in ('counter', 'gauge', 'histogram')
            assert (comment[3] == 'counter') == comment[2].endswith('_total')
            kinds[comment[2]] = comment[3]
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            family = family_of(sample[1], kinds)
            assert family in kinds and family in helps
            assert family == last or family not in families, 'a family stands together'
            last = family
            of, value = labels(sample[2]), float(sample[3])
            key = sample[1], frozenset(of.items())
            assert key not in seen
            assert value >= 0
            seen[key] = value
            families.setdefault(family, []).append((sample[1], of, value))
    assert helps == set(kinds)
    for family, samples in families.items():
        if kinds[family] == 'histogram':
            check_histogram(samples)
    return seen
