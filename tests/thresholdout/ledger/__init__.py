import pytest

pytest.register_assert_rewrite("tests.thresholdout.ledger.contract")
