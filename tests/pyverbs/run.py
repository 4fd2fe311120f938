# SPDX-License-Identifier: GPL-2.0
"""
Runs the tests of rdma-core's own suite one by one, each in a child that is
killed with all that it started when it stalls.

Started by run.sh. Prints a line for each test, "ok - FILE.CLASS.TEST",
"not ok - ...: why" or "skip - ...: reason", and compares what was skipped with
the list of expected skips. run.sh counts the lines.
"""

import argparse
import faulthandler
import fnmatch
import glob
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
import types
import unittest

# files for other devices
OTHERS = ('test_mlx5_*', 'test_efa*', 'test_cuda_*')


def say(verdict, name, why=''):
    print(f'{verdict} - {name}' + (f': {why}' if why else ''), flush=True)


def read_list(path):
    """The expected skips: name -> reason."""
    expected = {}
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            words = line.split('#')[0].split(None, 1)
            if words:
                expected[words[0]] = words[1].strip() if words[1:] else ''
    return expected


def set_up_suite(source, args):
    """
    The suite is imported without its __init__.py, which loads the files for
    other devices as well.
    """
    package = types.ModuleType('tests')
    package.__path__ = [source]
    sys.modules['tests'] = package
    sys.path.append(source)
    sys.argv = ['run.py', '--dev', args.dev]
    if args.gid is not None:
        sys.argv += ['--gid', str(args.gid)]
    importlib.import_module('args_parser').parser.parse_args()


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def reason_of(trace):
    """One line out of a traceback: what was raised, and where."""
    lines = trace.strip().splitlines()
    what = next((line for line in reversed(lines) if line[:1].strip()), '?')
    places = [line.split('"') for line in lines if line.startswith('  File "')]
    where = ''
    if places:
        number = places[-1][2].split(',')[1].replace('line', '').strip()
        where = f' @{os.path.basename(places[-1][1])}:{number}'
    return what + where


def run_here(test):
    """In the child: runs the test and says how it went."""
    result = unittest.TestResult()
    try:
        unittest.TestSuite([test]).run(result)
    except BaseException:  # pylint: disable=broad-except
        result.errors.append((test, traceback.format_exc()))
    bad = result.errors + result.failures
    for _, trace in bad:
        print(trace, flush=True)
    if bad:
        return 'not ok', reason_of(bad[0][1])
    if result.unexpectedSuccesses:
        return 'not ok', 'unexpected success'
    if result.skipped:
        return 'skip', ' '.join(result.skipped[0][1].split())
    return 'ok', ''


def child(test, pipe, log, limit):
    os.setsid()
    null = os.open('/dev/null', os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # where it stalls goes to the log
    faulthandler.dump_traceback_later(max(limit - 1, 1))
    print(f'==== {test.id()}', flush=True)
    verdict = run_here(test)
    sys.stdout.flush()
    os.write(pipe, json.dumps(verdict).encode())
    os._exit(0)


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def reap(pid):
    """Exit status, or None for a process that is stuck in the kernel."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def run_apart(test, log, limit):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            child(test, theirs, log, limit)
        finally:
            os._exit(1)
    os.close(theirs)
    # not until the pipe is closed: what the test started may hold it
    in_time = select.select([ours], [], [], limit)[0]
    verdict = os.read(ours, 65536) if in_time else b''
    os.close(ours)
    if in_time:
        status = reap(pid)
        kill_group(pid)
    else:
        kill_group(pid)
        status = reap(pid)
    if status is None:
        return 'not ok', 'its process does not end'
    if not in_time:
        return 'not ok', f'stalled, killed after {limit:.0f} s'
    if not verdict:
        return 'not ok', f'its process ended with status {status}'
    return json.loads(verdict)


def run_file(name, args, expected, log):
    """Runs the tests of one file and returns their names."""
    end = time.monotonic() + args.file_limit
    try:
        module = importlib.import_module('tests.' + name)
    except Exception:  # pylint: disable=broad-except
        say('not ok', name, reason_of(traceback.format_exc()))
        return []
    names = []
    for test in flat(unittest.defaultTestLoader.loadTestsFromModule(module)):
        name = test.id().removeprefix('tests.')
        names.append(name)
        if args.only and not any(fnmatch.fnmatch(name, p) for p in args.only):
            continue
        limit = min(args.test_limit, end - time.monotonic())
        if limit < 1:
            say('not ok', name, f'no time left: its file has had {args.file_limit:.0f} s')
            continue
        verdict, why = run_apart(test, log, limit)
        if verdict == 'skip' and name not in expected:
            say('not ok', name, f'skipped, and not listed in expected-skips.txt: {why}')
            continue
        say(verdict, name, why)
        if verdict == 'ok' and name in expected:
            print(f'# {name} is listed in expected-skips.txt and passes: '
                  'take it off the list', flush=True)
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--source', required=True, help='the suite')
    parser.add_argument('--dev', required=True)
    parser.add_argument('--gid', type=int)
    parser.add_argument('--skips', required=True, help='list of expected skips')
    parser.add_argument('--log', required=True, help='what the tests print')
    parser.add_argument('--test-limit', type=float, default=30)
    parser.add_argument('--file-limit', type=float, default=120)
    parser.add_argument('only', nargs='*', help='patterns of names')
    args = parser.parse_args()

    expected = read_list(args.skips)
    set_up_suite(args.source, args)
    log = os.open(args.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    known = set()
    for path in sorted(glob.glob(os.path.join(args.source, 'test_*.py'))):
        name = os.path.basename(path)[:-3]
        if not any(fnmatch.fnmatch(name, other) for other in OTHERS):
            known.update(run_file(name, args, expected, log))
    for name in sorted(set(expected) - known):
        say('not ok', name, 'listed in expected-skips.txt, but there is no such test')


if __name__ == '__main__':
    main()
