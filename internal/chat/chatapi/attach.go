package chatapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/core/principal"
)

// attach returns the turn of the message that a path names. Others' messages do not
// exist for a caller.
func (d *Handler) attach(r *http.Request) (*conversation.Turn, error) {
	id := r.PathValue("message")
	t, err := d.service.Attach(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if maySend(principal.Of(r.Context()), t.Message.Person) != nil {
		return nil, fault.New(fault.NotFound, "no message %q", id)
	}
	return t, nil
}

// result is GET /api/v1/chat/{message}: it waits for the answer.
func (d *Handler) result(w http.ResponseWriter, r *http.Request) error {
	t, err := d.attach(r)
	if err != nil {
		return err
	}
	return d.respond(w, r, t)
}

// reattach is GET /api/v1/chat/{message}/stream: all events of the turn, from the first.
func (d *Handler) reattach(w http.ResponseWriter, r *http.Request) error {
	t, err := d.attach(r)
	if err != nil {
		return err
	}
	return d.streamTurn(w, r, t, r.URL.Query().Get("tool_events") == "true")
}

// stop is POST /api/v1/chat/{message}/stop. The answer is what was said so far.
func (d *Handler) stop(w http.ResponseWriter, r *http.Request) error {
	t, err := d.attach(r)
	if err != nil {
		return err
	}
	if err := d.service.Stop(r.Context(), t.ID); err != nil {
		return err
	}
	reply, err := t.Wait(r.Context())
	if err != nil {
		return ofTurn(err)
	}
	httpjson.JSON(w, http.StatusOK, responseOf(t, reply))
	return nil
}
