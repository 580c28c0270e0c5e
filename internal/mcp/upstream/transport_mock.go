package upstream

import (
	"context"

	"github.com/luanette/luanette/internal/mcp/recording"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// mockTransport answers from a recording, in place of a server.
type mockTransport struct {
	*dispatcher
	player *recording.Player
}

// dialMock reads the recording of a spec.
func dialMock(spec Spec) (Transport, error) {
	player, err := recording.NewPlayer(spec.Mock)
	if err != nil {
		return nil, notSent(err)
	}
	return &mockTransport{newDispatcher(Hooks{}), player}, nil
}

// Call implements Transport.
func (t *mockTransport) Call(_ context.Context, out Outgoing) (wire.Message, error) {
	if err := t.Err(); err != nil {
		return wire.Message{}, notSent(err)
	}
	answer := wire.Message{ID: out.Message.ID}
	answer.Result, answer.Error = t.player.Answer(out.Message.Method, out.Message.Params)
	return answer, nil
}

// Send implements Transport: a recording needs no notifications.
func (t *mockTransport) Send(context.Context, wire.Message) error { return t.Err() }

// Close implements Transport.
func (t *mockTransport) Close() { t.fail(errClosed) }
