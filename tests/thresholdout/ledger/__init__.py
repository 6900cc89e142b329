import pytest

pytest.register_assert_rewrite("tests.thresholdout.ledger.contract", "tests.thresholdout.ledger.contract_of_threads")
