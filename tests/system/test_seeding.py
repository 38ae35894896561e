import torch

from lors.system.seeding import derive_seed, generator, global_seed


def test_same_keys_same_numbers_other_keys_other_numbers() -> None:
    first, again, other = (torch.rand(3, generator=generator(0, "a", i)) for i in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_keys_do_not_run_together() -> None:
    assert derive_seed(1, "2") != derive_seed("1", 2) != derive_seed(12)


def test_global_seed_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    with global_seed(0):
        first = torch.rand(2)
    with global_seed(0):
        assert torch.equal(first, torch.rand(2))
    assert torch.equal(before, torch.random.get_rng_state())
