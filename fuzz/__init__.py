"""Coverage-guided fuzzers for everything that parses foreign bytes.

    targets/NAME.py   one fuzzer: `one_input(data)` calls an entry point of the program
    corpus/NAME/      its inputs: samples, minimised finds, and inputs that once crashed the program
    guard.py          the limits of one input, and what counts as a crash
    mutator.py        how inputs are changed: tokens, long runs, deep nesting, huge numbers
    session.py        one fuzzer with Atheris (libFuzzer)
    replay.py         inputs once more, without Atheris; the test suite replays the corpus with it
    minimise.py       the fewest and smallest inputs with the same coverage
    __main__.py       all fuzzers in turn, and a table: `make fuzz`

docs/how-to/fuzz.md explains how to run them and how to add one.
"""
