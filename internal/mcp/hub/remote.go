package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Nodes are the other nodes that serve the same clients. A client's message may reach one
// node although it belongs to a request on another: input that a request waits for, an
// answer to a question, a cancellation. It is passed to that node.
type Nodes interface {
	// Self is the id of this node.
	Self() string
	// Send calls HandleRemote on a node and returns its answer. An empty node means the
	// one to which the message belongs. A node that has stopped is fault.NotFound.
	Send(ctx context.Context, node string, body []byte) ([]byte, error)
}

// remoteMessage is a message that is passed to another node.
type remoteMessage struct {
	Place   string          `json:"place"`             // the upstream's namespace, or ""
	Owner   string          `json:"owner,omitempty"`   // whose connection to it is used, if each has one
	Who     string          `json:"who"`               // its principal
	Session string          `json:"session,omitempty"` // a hash of its id, which is a secret of its client
	Message json.RawMessage `json:"message"`
	// Principal is on whose behalf a request is served; nil for input, answers and
	// notifications.
	Principal *principal.Principal `json:"principal,omitempty"`
	Header    http.Header          `json:"header,omitempty"` // with trace context
}

// remoteAnswer is the answer of the other node.
type remoteAnswer struct {
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// forwardTimeout is how long a node is searched to which a message belongs.
const forwardTimeout = 2 * time.Second

// tag adds the id of this node to a ticket or session id.
func (h *Hub) tag(state string) string {
	if h.opts.Nodes == nil {
		return state
	}
	return h.opts.Nodes.Self() + "." + state
}

// untag removes it again. node is "" for this node.
func (h *Hub) untag(state string) (node, rest string) {
	if h.opts.Nodes == nil {
		return "", state
	}
	node, rest, tagged := strings.Cut(state, ".")
	switch {
	case !tagged:
		return "", state
	case node == h.opts.Nodes.Self():
		return "", rest
	}
	return node, rest
}

// waitsAtNode is the other node on which a request waits for this input; "" if there is no
// such request or it waits here.
func (h *Hub) waitsAtNode(state json.RawMessage) string {
	text, ok := rawjson.Text(state)
	if !ok {
		return ""
	}
	node, _ := h.untag(text)
	return node
}

// resumeAtNode passes input to the node on which a request waits for it.
func (e *endpoint) resumeAtNode(w http.ResponseWriter, r *http.Request, node string, m wire.Message) {
	back, err := e.sendToNode(r.Context(), node, remoteMessage{Place: e.name, Owner: e.owner, Who: e.hub.principal(r), Message: m.Append(nil)})
	var b remoteAnswer
	if err == nil {
		err = json.Unmarshal(back, &b)
	}
	switch {
	case r.Context().Err() != nil: // the client has disconnected
	case fault.CodeOf(err) == fault.NotFound:
		refuse(w, http.StatusOK, m.ID, errBadState)
	case err != nil:
		e.hub.log.WarnContext(r.Context(), "cannot pass input to the node where its request waits", "node", node, "error", err)
		refuse(w, http.StatusServiceUnavailable, m.ID, wire.Errorf(wire.CodeInternal, "the node where this call waits cannot be reached: try again"))
	default:
		writeJSON(w, b.Status, b.Answer)
	}
}

func (e *endpoint) sendToNode(ctx context.Context, node string, c remoteMessage) ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode a message for another node")
	}
	return e.hub.opts.Nodes.Send(ctx, node, body)
}

// forward passes a client's answer or notification to the node to which it belongs, in the
// background.
func (e *endpoint) forward(s *session, m wire.Message) {
	if e.hub.opts.Nodes == nil {
		return
	}
	e.hub.spawn(func(ctx context.Context) { e.sendToSession(ctx, s, m) })
}

// forwardUpdate tells the node where the client reads the session's stream, unless it does so
// here, that a resource has changed. Changes while that node is being told are one.
func (e *endpoint) forwardUpdate(s *session, uri string, note wire.Message) {
	if e.hub.opts.Nodes == nil || s.Connected() || !s.beginUpdate(uri) {
		return
	}
	e.hub.spawn(func(ctx context.Context) {
		e.sendToSession(ctx, s, note)
		if s.endUpdate(uri) {
			e.forwardUpdate(s, uri, note) //nolint:contextcheck // it has a time of its own
		}
	})
}

// sendToSession passes a message to the node where it belongs to the session.
func (e *endpoint) sendToSession(ctx context.Context, s *session, m wire.Message) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	c := remoteMessage{Place: e.name, Owner: e.owner, Who: s.who, Session: hashed(s.id), Message: m.Append(nil)}
	if _, err := e.sendToNode(ctx, "", c); err != nil {
		e.hub.log.DebugContext(ctx, "a message belongs to no node", "error", err)
	}
}

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// HandleRemote handles a message that a client sent to another node. mine is false if it
// belongs to nothing on this node.
func (h *Hub) HandleRemote(ctx context.Context, body []byte) (answer []byte, mine bool) {
	var c remoteMessage
	if json.Unmarshal(body, &c) != nil {
		return nil, false
	}
	m, err := wire.Parse(c.Message)
	e := h.local
	if c.Place != "" {
		h.mu.Lock()
		e = h.relays[relayKey{c.Place, c.Owner}]
		h.mu.Unlock()
	}
	switch {
	case err == nil && c.Principal != nil:
		return h.receiveRemote(ctx, c, m), true
	case err != nil || e == nil || h.isClosing():
		return nil, false
	case c.Session != "":
		return nil, e.deliverRemote(c, m)
	}
	return e.resumeRemote(ctx, c.Who, m), true
}

// deliverRemote delivers an answer or a notification to its session and tells whether the
// session waited for it, or to its client. Requests are not passed this way, since they need a
// principal.
func (e *endpoint) deliverRemote(c remoteMessage, m wire.Message) bool {
	for _, s := range e.sessions.list() {
		switch {
		case s.who != c.Who || hashed(s.id) != c.Session:
		case m.IsResponse():
			return s.deliver(m)
		case m.Method == wire.MethodUnsubscribe:
			return s.unsubscribe(uriOf(m.Params))
		case m.Method == wire.NoteResourceUpdated:
			if s.Connected() {
				s.main.offer(m.Append(nil))
			}
			return s.Connected()
		case m.IsNotification():
			return s.notified(m)
		}
	}
	return false
}

// resumeRemote resumes a request that waits here with input that came to another node.
func (e *endpoint) resumeRemote(ctx context.Context, who string, m wire.Message) []byte {
	resp := newResponse(m.ID, "")
	resp.modern, resp.jsonOnly = true, true
	about, err := readModern(m, nil)
	var req *request
	if err == nil {
		resp.token, resp.level = about.token, about.level
		req, err = e.modernRequest(about, m, who, resp)
	}
	if err == nil && req.isNew() { // it carries no ticket
		err = errBadState
	}
	if err != nil {
		resp.finish(nil, err, false)
	}
	select {
	case <-resp.done():
	case <-ctx.Done():
		if req != nil && !req.isNew() {
			req.disconnected(ctx, resp)
		}
		return nil
	}
	back, err := json.Marshal(remoteAnswer{resp.status, resp.answer})
	if err != nil { // an answer is JSON
		return nil
	}
	return back
}
