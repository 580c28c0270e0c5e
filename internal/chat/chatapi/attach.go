package chatapi

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/core/principal"
)

// attach returns the turn of the message that a path names, to read it. Others' messages do
// not exist for a caller, unless they are shared.
func (d *Handler) attach(r *http.Request) (*conversation.Turn, error) {
	t, own, err := d.turn(r)
	if err != nil || own {
		return t, err
	}
	shared, err := d.service.MayRead(r.Context(), t.Message)
	if err == nil && !shared {
		err = noMessage(t.ID)
	}
	if err == nil {
		d.audit(r, auditRead, t.Message.Person, t.Message.Conversation)
	}
	return t, err
}

// turn returns the turn of the message that a path names, and whether it is one of the
// caller's.
func (d *Handler) turn(r *http.Request) (t *conversation.Turn, own bool, err error) {
	t, err = d.service.Attach(r.Context(), r.PathValue("message"))
	if err != nil {
		return nil, false, err
	}
	return t, maySend(principal.Of(r.Context()), t.Message.Person) == nil, nil
}

func noMessage(id string) error { return fault.New(fault.NotFound, "no message %q", id) }

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
	t, own, err := d.turn(r)
	if err != nil {
		return err
	}
	if !own {
		return noMessage(t.ID)
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
