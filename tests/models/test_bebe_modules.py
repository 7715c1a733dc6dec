"""The fast recurrent layer has the outputs, states and gradients of torch, for any number of steps."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from ethobench.models.bebe_modules import GRU_BLOCK, BidirectionalGru  # noqa: E402

pytestmark = pytest.mark.slow


def pair(inputs: int = 5, hidden: int = 7):
    torch.manual_seed(0)
    ours, theirs = BidirectionalGru(inputs, hidden), torch.nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("steps", [1, 2, GRU_BLOCK - 1, GRU_BLOCK, 2 * GRU_BLOCK + 3])
@pytest.mark.parametrize("batch", [1, 4])
def test_outputs_and_gradients_are_those_of_torch(steps, batch):
    ours, theirs = pair()
    x = torch.randn(batch, steps, 5)
    our_inputs, their_inputs = x.clone().requires_grad_(), x.clone().requires_grad_()
    (outputs, last), (expected, expected_last) = ours(our_inputs), theirs(their_inputs)
    torch.testing.assert_close(outputs, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last, expected_last, atol=1e-5, rtol=1e-5)
    weigh = torch.randn_like(outputs)
    (outputs * weigh).sum().backward()
    (expected * weigh).sum().backward()
    torch.testing.assert_close(our_inputs.grad, their_inputs.grad, atol=1e-4, rtol=1e-4)
    for mine, named in zip(ours.parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(mine.grad, named[1].grad, atol=1e-3, rtol=1e-4, msg=named[0])


def test_weights_can_be_exchanged_with_torch():
    ours, theirs = pair()
    assert [*ours.state_dict()] == [*theirs.state_dict()]


def test_other_precisions_and_initial_states_use_torch():
    ours, theirs = pair()
    x, start = torch.randn(2, 4, 5), torch.randn(2, 2, 7)
    torch.testing.assert_close(ours(x, start)[0], theirs(x, start)[0])
    torch.testing.assert_close(ours.double()(x.double())[0], theirs.double()(x.double())[0])


def test_predictions_without_gradients_are_the_same():
    ours, theirs = pair()
    x = torch.randn(3, 50, 5)
    with torch.no_grad():
        torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-6, rtol=1e-5)


def test_training_gives_the_same_loss():
    ours, theirs = pair()
    x, y = torch.randn(4, 40, 5), torch.randn(4, 40, 14)
    losses = []
    for layer in (ours, theirs):
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(layer(x)[0], y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
