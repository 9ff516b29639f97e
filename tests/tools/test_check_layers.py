"""tools/check-layers, on trees that break the table in one way each."""
import pytest

TABLE = """
[modules]
base:
gate: base
store: base
runner: base gate store
cli:

[concepts]
base: api err x
gate: gate
store: store

[outside]
sodium.h: base
sqlite3.h: store/sqlite

[system]
stdio.h sys/*

[public]
stddef.h
"""


@pytest.fixture
def tree(write, tmp_path):
    """A small tree that keeps to its table."""
    write('tools/layers.txt', TABLE)
    write('include/baton.h', '#include <baton/err.h>\n')
    write('include/baton/err.h', '#include <stddef.h>\n#include <baton/api.h>\n')
    write('src/base/buf.h', '')
    write('src/base/buf.c', '#include "buf.h"\n#include <sodium.h>\n#include <stdio.h>\n')
    write('src/gate/gate.c', '#include <baton/err.h>\n#include <sys/stat.h>\n'
                             '#include "base/buf.h"\n')
    write('src/store/sqlite/db.c', '#include <sqlite3.h>\n#include "store/store.h"\n')
    write('src/cli/main.c', '#include <baton.h>\n#include <stdio.h>\n')
    return tmp_path


def test_a_tree_that_keeps_to_the_table_passes(run, tree):
    result = run('tools/check-layers', tree)
    assert result.returncode == 0, result.stdout
    assert result.stdout == '7 files keep to tools/layers.txt\n'


def test_this_tree_passes(run, root):
    result = run('tools/check-layers', root)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('name, line, complaint', [
    ('src/gate/x.c', '#include "store/store.h"',
     'src/gate/x.c:3: gate may not include store/store.h (tools/layers.txt allows: base)'),
    ('src/base/x.h', '  #  include "gate/gate.h"',
     'src/base/x.h:3: base may not include gate/gate.h '
     '(tools/layers.txt allows: only the public headers)'),
    ('src/cli/x.c', '#include "base/buf.h"',
     'src/cli/x.c:3: cli may not include base/buf.h '
     '(tools/layers.txt allows: only the public headers)'),
    ('src/gate/x.c', '#include <sodium.h>',
     'src/gate/x.c:3: gate may not include sodium.h (tools/layers.txt allows it in: base)'),
    ('src/store/x.c', '#include <sqlite3.h>',
     'src/store/x.c:3: store may not include sqlite3.h '
     '(tools/layers.txt allows it in: store/sqlite)'),
    ('src/store/sqlitelike/x.c', '#include <sqlite3.h>',
     'src/store/sqlitelike/x.c:3: store/sqlitelike may not include sqlite3.h '
     '(tools/layers.txt allows it in: store/sqlite)'),
    ('src/gate/x.c', '#include <glib.h>',
     'src/gate/x.c:3: gate may not include glib.h (tools/layers.txt does not know it)'),
    ('src/gate/x.c', '#include <base/buf.h>',
     'src/gate/x.c:3: gate may not include base/buf.h (tools/layers.txt does not know it)'),
    ('src/gate/x.c', '#include "../store/store.h"',
     'src/gate/x.c:3: ../store/store.h climbs out of its folder; it is "module/file.h"'),
    ('src/gate/x.c', '#include "buf.h"',
     'src/gate/x.c:3: buf.h is not in the same folder; it is "module/file.h"'),
    ('src/gate/x.c', '#include "nowhere/x.h"',
     'src/gate/x.c:3: nowhere/x.h belongs to no module of tools/layers.txt'),
    ('src/gate/x.c', '#include HEADER',
     'src/gate/x.c:3: #include HEADER cannot be checked; it is <file.h> or "file.h"'),
    ('src/gate/x.c', '#include <baton.h>',
     'src/gate/x.c:3: gate may not include baton.h; it names the headers that it uses'),
    ('src/gate/x.c', '#include <baton/../../src/store/store.h>',
     'src/gate/x.c:3: baton/../../src/store/store.h climbs out of its folder; '
     'it is "module/file.h"'),
    ('include/baton/x.h', '#include <baton/./err.h>',
     'include/baton/x.h:3: baton/./err.h climbs out of its folder; it is "module/file.h"'),
    ('src/gate/x.c', '#inc\\\nlude \\ \n "store/store.h"',
     'src/gate/x.c:3: gate may not include store/store.h (tools/layers.txt allows: base)'),
    ('src/gate/x.c', '#define X \\\n 1\n#include "store/store.h"',
     'src/gate/x.c:5: gate may not include store/store.h (tools/layers.txt allows: base)'),
    ('src/gate/x.c', '%: include "store/store.h"',
     'src/gate/x.c:3: gate may not include store/store.h (tools/layers.txt allows: base)'),
    ('src/gate/x.c', '#import "store/store.h"',
     'src/gate/x.c:3: gate may not include store/store.h (tools/layers.txt allows: base)'),
    ('src/gate/x.c', '#include "base/buf.c"',
     'src/gate/x.c:3: base/buf.c is no header; its name ends with .h'),
    ('src/gate/x.c', '#include <baton/store.h>',
     'src/gate/x.c:3: gate may not include baton/store.h, which belongs to store '
     '(tools/layers.txt)'),
    ('src/gate/x.c', '#include <baton/other.h>',
     'src/gate/x.c:3: baton/other.h belongs to no module in [concepts] of tools/layers.txt'),
    ('include/baton/x.h', '#include <baton/gate.h>',
     'include/baton/x.h:3: base may not include baton/gate.h, which belongs to gate '
     '(tools/layers.txt)'),
    ('include/baton/x.h', '#include <stdio.h>',
     'include/baton/x.h:3: a public header may not include stdio.h '
     '(tools/layers.txt allows: baton/* stddef.h)'),
    ('include/baton/x.h.in', '#include "base/buf.h"',
     'include/baton/x.h.in:3: a public header may not include "base/buf.h"; it says <baton/...>'),
])
def test_an_include_that_is_not_allowed_is_named(run, tree, write, name, line, complaint):
    write(name, f'/* first\n   second */\n{line}\n')
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert result.stdout == complaint + '\n'


def test_an_include_in_a_comment_does_not_count(run, tree, write):
    write('src/gate/x.c', '/*\n#include "store/store.h"\n*/\n// \\\n')
    assert run('tools/check-layers', tree).returncode == 0


@pytest.mark.parametrize('name, line', [
    ('src/runner/x.c', '#include <baton/store.h>'), ('src/gate/x.c', '#include <baton/gate.h>'),
    ('src/cli/x.c', '#include <baton/store.h>'),
    ('include/baton/store.h', '#include <baton/err.h>'),
    ('src/gate/x.c', '// to be continued \\\n#include "store/store.h"'),
])
def test_an_include_that_is_allowed_passes(run, tree, write, name, line):
    write(name, line + '\n')
    result = run('tools/check-layers', tree)
    assert result.returncode == 0, result.stdout


def test_a_header_that_is_generated_counts_as_there(run, tree, write):
    write('src/gate/made.h.in', '')
    write('src/gate/x.c', '#include "made.h"\n')
    assert run('tools/check-layers', tree).returncode == 0


def test_a_public_header_that_belongs_to_no_module_is_named(run, tree, write):
    write('include/baton/new.h', '')
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert result.stdout == ('include/baton/new.h: baton/new.h belongs to no module in [concepts] '
                             'of tools/layers.txt\n')


def test_a_source_that_is_not_utf_8_is_read(run, tree):
    (tree / 'src/gate/x.c').write_bytes(b'/* \xe9 */\n#include "store/store.h"\n')
    result = run('tools/check-layers', tree)
    assert (result.returncode, result.stderr) == (1, '')
    assert result.stdout.startswith('src/gate/x.c:2: gate may not include store/store.h')


def test_a_comment_sign_in_a_string_hides_nothing(run, tree, write):
    write('src/gate/x.c', 'char *s = "/*";\n#include "store/store.h"\nchar *t = "*/";\n')
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert 'src/gate/x.c:2: gate may not include store/store.h' in result.stdout


@pytest.mark.parametrize('link', [
    'store_dep', 'store_lib', "modules['store']['dep']", "modules.get('store')['lib']",
])
def test_a_link_that_is_not_allowed_is_named(run, tree, write, link):
    write('src/gate/meson.build', "# store_dep\ngate_lib = static_library('gate',\n"
                                  f"  dependencies: [base_dep, {link}, other_dep])\n"
                                  "gate_dep = declare_dependency(link_with: gate_lib)\n"
                                  "modules += {'gate': {'lib': gate_lib, 'dep': gate_dep}}\n")
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert result.stdout == ('src/gate/meson.build:3: gate may not link store '
                             '(tools/layers.txt allows: base)\n')


def test_a_folder_that_is_in_no_row_is_an_error(run, tree, write):
    write('src/extra/x.c', '')
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert result.stdout == 'src/extra/x.c: extra is no module of tools/layers.txt\n'


def test_a_file_outside_of_all_modules_is_an_error(run, tree, write):
    write('src/x.c', '')
    result = run('tools/check-layers', tree)
    assert result.returncode == 1
    assert result.stdout == 'src/x.c: lies in no module\n'


def test_a_tree_without_sources_is_an_error(run, write, tmp_path):
    write('tools/layers.txt', TABLE)
    result = run('tools/check-layers', tmp_path)
    assert result.returncode == 1
    assert 'no source file' in result.stdout


@pytest.mark.parametrize('table, complaint', [
    ('[modules]\nbase: gate\ngate: base\n', 'base uses gate, which is in no row above'),
    ('[modules]\nbase base\n', 'a row is "name: name ..."'),
    ('[outside]\nx.h: nowhere\n', 'nowhere is in no row of [modules]'),
    ('[concepts]\nnowhere: x\n', 'nowhere is in no row of [modules]'),
    ('base:\n', 'unknown section None'),
    ('[other]\nx\n', 'unknown section other'),
])
def test_a_table_that_makes_no_sense_is_an_error(run, write, tmp_path, table, complaint):
    write('tools/layers.txt', table)
    write('src/base/x.c', '')
    result = run('tools/check-layers', tmp_path)
    assert result.returncode == 2
    assert complaint in result.stdout


def test_a_tree_without_a_table_is_an_error(run, write, tmp_path):
    write('src/base/x.c', '')
    assert run('tools/check-layers', tmp_path).returncode == 2
