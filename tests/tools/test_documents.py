"""What the documents say agrees with the tree."""
import re
import shutil

import pytest

LINK = re.compile(r'\[[^\]]*\]\(([^)#]+)[^)]*\)')


def documents(root):
    folders = ('docs', 'src', 'tests', 'bench', 'examples', 'tools')
    found = sorted(root.glob('*.md'))
    for folder in folders:
        found += sorted((root / folder).rglob('*.md'))
    return found


def test_the_example_in_the_readme_is_the_one_that_is_tested(root):
    blocks = re.findall(r'^```c\n(.*?)^```$', (root / 'README.md').read_text(),
                        re.DOTALL | re.MULTILINE)
    assert blocks == [(root / 'examples/gate.c').read_text()]


def test_the_two_commands_are_on_the_first_screen(root):
    first = (root / 'README.md').read_text().splitlines()[:24]
    assert any(line.startswith('make run') for line in first)
    assert any(line.startswith('make test') for line in first)


def test_every_link_leads_somewhere(root):
    assert documents(root)
    for document in documents(root):
        for target in LINK.findall(document.read_text()):
            if '://' not in target:
                assert (document.parent / target).exists(), f'{document}: {target}'


def test_every_module_has_a_readme_and_is_in_the_table(root):
    table = (root / 'README.md').read_text()
    modules = sorted(p for p in (root / 'src').iterdir() if p.is_dir())
    assert modules
    for module in modules:
        assert (module / 'README.md').exists(), module
        assert f'`src/{module.name}/`' in table, module


def test_every_decision_is_in_the_index(root):
    index = (root / 'docs/decisions/README.md').read_text()
    decisions = sorted((root / 'docs/decisions').glob('[0-9]*.md'))
    assert decisions
    for decision in decisions:
        assert f'({decision.name})' in index


def test_every_public_header_is_in_the_one_that_has_them_all(root):
    everything = (root / 'include/baton.h').read_text()
    for header in sorted((root / 'include/baton').glob('*.h*')):
        name = header.name.removesuffix('.in')
        if name != 'api.h':     # every other header includes it
            assert f'#include <baton/{name}>' in everything


def test_every_target_of_the_makefile_is_in_its_help(root, run):
    text = (root / 'Makefile').read_text()
    rules = ' '.join(re.findall(r'^([a-z][a-z -]*):', text, re.MULTILINE)).split()
    targets = re.search(r'^\.PHONY: (.*)$', text, re.MULTILINE).group(1).split()
    assert sorted(rules) == sorted(targets)
    shown = run('make', '-C', root, 'help').stdout
    for target in targets:
        if target not in ('all', 'help'):
            assert re.search(rf'\b{target}\b', shown), target


def test_the_version_stands_in_one_place(root):
    version = re.search(r"version: '([^']+)'", (root / 'meson.build').read_text()).group(1)
    for folder in ('include', 'src', 'man', 'tools'):
        for path in sorted((root / folder).rglob('*')):
            if path.is_file():
                assert version not in path.read_text(), path


def test_the_manual_pages_are_in_order(root, run):
    if not shutil.which('mandoc'):
        pytest.skip('no mandoc')
    pages = sorted((root / 'man').glob('*.1'))
    assert pages
    result = run('mandoc', '-T', 'lint', '-W', 'warning', *pages)
    assert (result.returncode, result.stdout) == (0, '')


def test_every_manual_page_is_installed_and_named_by_the_first(root):
    installed = (root / 'man/meson.build').read_text()
    first = (root / 'man/baton.1').read_text()
    for page in sorted((root / 'man').glob('*.1')):
        assert f"'{page.name}'" in installed
        assert page.name == 'baton.1' or f'.Xr {page.name[:-2]} 1' in first
