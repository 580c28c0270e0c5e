package chatapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
)

// say passes a message to the conversation service and logs it.
func (d *Handler) say(r *http.Request, m conversation.Message) (*conversation.Turn, error) {
	log := d.options.Log.With("request_id", m.RequestID, "user_id", m.Person.User)
	log.InfoContext(r.Context(), "request_received", "event", "request_received", "client_id", m.Client, "path", r.URL.Path)
	t, err := d.service.Send(context.WithoutCancel(r.Context()), m)
	if err != nil {
		log.WarnContext(r.Context(), "request_error", "event", "request_error", "error", err)
		return nil, err
	}
	log.InfoContext(r.Context(), "do_routed", "event", "do_routed", "do_id", m.Person.String())
	return t, nil
}

// follow waits for the outcome of a turn and logs it, also if the client has
// disconnected before.
func (d *Handler) follow(ctx context.Context, t *conversation.Turn, see func(agent.Event) error) (Response, error) {
	began := time.Now()
	var unseen error
	reply, err := t.Follow(ctx, func(e agent.Event) error {
		unseen = see(e)
		return unseen
	})
	if unseen != nil || ctx.Err() != nil {
		err = movedError(t) // or the client has disconnected and reads nothing
		if d.ending.Err() != nil {
			return Response{}, err
		}
		d.hooks.Go(func() { // the turn outlives the request
			if reply, err := t.Wait(d.ending); d.ending.Err() == nil {
				d.report(d.ending, t, began, reply, err, true)
			}
		})
		return Response{}, err
	}
	d.report(ctx, t, began, reply, err, false)
	if errors.Is(err, conversation.ErrMoved) {
		return Response{}, movedError(t)
	}
	if err != nil {
		return Response{}, ofTurn(err)
	}
	return responseOf(t, reply), nil
}

// movedError says how to get the answer to a message that is answered elsewhere.
func movedError(t *conversation.Turn) error {
	key := cmp.Or(t.Message.Key, t.ID)
	return movedTo{key, failure.As(failure.Moved, fault.New(fault.Unavailable, "the server is shutting down; the message is stored and will be answered").
		WithHint("send it again with message_key %s to get its answer, from another node or after the restart", key))}
}

// movedTo is an error of a message that is answered elsewhere.
type movedTo struct {
	key string
	error
}

func (m movedTo) Unwrap() error { return m.error }

// report logs the outcome of a turn.
func (d *Handler) report(ctx context.Context, t *conversation.Turn, began time.Time, reply agent.Reply, err error, gone bool) {
	log := d.options.Log.With("request_id", t.Message.RequestID, "user_id", t.Message.Person.User)
	if gone {
		log = log.With("client_gone", true)
	}
	if err != nil {
		log.ErrorContext(ctx, "request_error", "event", "request_error", "error", err, "code", fault.CodeOf(err))
		return
	}
	log.InfoContext(ctx, "request_complete", "event", "request_complete",
		"duration_ms", time.Since(began).Milliseconds(), "iterations", reply.Iterations, "status", http.StatusOK)
}

func responseOf(t *conversation.Turn, reply agent.Reply) Response {
	answer := Response{
		Responses: reply.Responses, ResponseLanguage: reply.Language, MessageID: t.ID,
		Model: reply.Model, Usage: reply.Usage, Warnings: t.Message.Warnings, Transcript: t.Message.Transcript, TraceID: reply.Trace,
	}
	for _, info := range reply.Media {
		answer.Media = append(answer.Media, mediaOf(t, info))
	}
	if answer.Responses == nil {
		answer.Responses = []string{}
	}
	if len(reply.Notices) > 0 {
		answer.Notices = reply.Notices
	}
	return answer
}

// answer is POST /api/v1/chat.
func (d *Handler) answer(w http.ResponseWriter, r *http.Request) error {
	_, m, err := d.message(w, r, false)
	if err != nil {
		return err
	}
	t, err := d.say(r, m)
	if err != nil {
		return err
	}
	return d.respond(w, r, t)
}

func (d *Handler) respond(w http.ResponseWriter, r *http.Request, t *conversation.Turn) error {
	response, err := d.follow(r.Context(), t, func(agent.Event) error { return nil })
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, response)
	return nil
}
