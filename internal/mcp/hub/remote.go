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

// Nodes are the others that serve the same clients. A client's message may reach
// one of them while what it is about is with another: a call that waits for its
// answers, a question, a request to be called off. It is carried there.
type Nodes interface {
	// Self is this node.
	Self() string
	// Send has the hub of a node Take a message, "" that of whichever it is about,
	// and brings back what it said. A node that is gone is a not_found.
	Send(ctx context.Context, node string, body []byte) ([]byte, error)
}

// remoteMessage is a message on its way to another node.
type remoteMessage struct {
	Place   string          `json:"place"`             // the upstream's namespace, or ""
	Who     string          `json:"who"`               // whose it is
	Session string          `json:"session,omitempty"` // a hash of its id, which is its client's key
	Message json.RawMessage `json:"message"`
	// What is to be done as whoever posted it says who that is.
	Principal *principal.Principal `json:"principal,omitempty"`
	Header    http.Header          `json:"header,omitempty"` // with its trace
}

// remoteAnswer is an answer on its way back.
type remoteAnswer struct {
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// forwardTimeout is how long somebody is looked for whom a message concerns.
const forwardTimeout = 2 * time.Second

// tag says in a ticket at which node its call waits.
func (h *Hub) tag(state string) string {
	if h.opts.Nodes == nil {
		return state
	}
	return h.opts.Nodes.Self() + "." + state
}

// untag takes that off again. Node is where the call waits, or "" for here.
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

// waitsAtNode tells at which other node the call waits that a request goes on
// with; "" when it is here, or the request goes on with none.
func (h *Hub) waitsAtNode(state json.RawMessage) string {
	text, ok := rawjson.Text(state)
	if !ok {
		return ""
	}
	node, _ := h.untag(text)
	return node
}

// resumeAtNode has another node go on with a call that waits there.
func (e *endpoint) resumeAtNode(w http.ResponseWriter, r *http.Request, node string, m wire.Message) {
	back, err := e.sendToNode(r.Context(), node, remoteMessage{Place: e.name, Who: e.hub.principal(r), Message: m.Append(nil)})
	var b remoteAnswer
	if err == nil {
		err = json.Unmarshal(back, &b)
	}
	switch {
	case r.Context().Err() != nil: // nobody is there to be told
	case fault.CodeOf(err) == fault.NotFound:
		refuse(w, http.StatusOK, m.ID, errExpiredState)
	case err != nil:
		e.hub.log.WarnContext(r.Context(), "a call that waits at another node did not go on", "node", node, "error", err)
		refuse(w, http.StatusServiceUnavailable, m.ID, wire.Errorf(wire.CodeInternal, "the node where this call waits cannot be reached: try again"))
	default:
		writeJSON(w, b.Status, b.Answer)
	}
}

func (e *endpoint) sendToNode(ctx context.Context, node string, c remoteMessage) ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write what is carried to another node")
	}
	return e.hub.opts.Nodes.Send(ctx, node, body)
}

// forward brings a client's answer or notification to the node that waits for it, if
// one does. It does not wait.
func (e *endpoint) forward(s *session, m wire.Message) {
	if e.hub.opts.Nodes == nil {
		return
	}
	c := remoteMessage{Place: e.name, Who: s.who, Session: hashed(s.id), Message: m.Append(nil)}
	e.hub.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
		defer cancel()
		if _, err := e.sendToNode(ctx, "", c); err != nil {
			e.hub.log.DebugContext(ctx, "a client's message concerned no node", "error", err)
		}
	})
}

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// HandleRemote does with a message what another node was told by a client. Mine is false
// when nothing here is concerned.
func (h *Hub) HandleRemote(ctx context.Context, body []byte) (answer []byte, mine bool) {
	var c remoteMessage
	if json.Unmarshal(body, &c) != nil {
		return nil, false
	}
	m, err := wire.Parse(c.Message)
	e := h.local
	if c.Place != "" {
		h.mu.Lock()
		e = h.relays[c.Place]
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

// deliverRemote gives a message to the session it belongs to, if that waits for
// it. Requests are not carried this way: whoever is asked to do something knows by whom.
func (e *endpoint) deliverRemote(c remoteMessage, m wire.Message) bool {
	for _, s := range e.sessions.list() {
		switch {
		case s.who != c.Who || hashed(s.id) != c.Session:
		case m.IsResponse():
			return s.deliver(m)
		case m.IsNotification():
			return s.notified(m)
		}
	}
	return false
}

// resumeRemote serves a request that goes on with a call which waits here.
func (e *endpoint) resumeRemote(ctx context.Context, who string, m wire.Message) []byte {
	resp := newResponse(m.ID, "")
	resp.modern, resp.jsonOnly = true, true
	about, err := readModern(m, nil)
	var req *request
	if err == nil {
		resp.token, resp.level = about.token, about.level
		req, err = e.modernRequest(about, m, who, resp)
	}
	if err == nil && req.isNew() { // it goes on with nothing: it was not for us
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
