package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// zmqTransport connects to a ZeroMQ backend as described in docs/backends.md.
// Backends do not speak MCP: the transport translates, and answers requests that
// they do not have.
type zmqTransport struct {
	*hootclient.Client
	leftOut
	hooks Hooks

	mu         sync.Mutex
	calls      map[hootproto.ID]*zmqCall // calls in progress
	broadcasts string                    // endpoint of the broadcasts that it listens to
}

// zmqCall is a call in progress.
type zmqCall struct {
	id       wire.ID
	received chan struct{} // gets a value for each broadcast that was passed to the caller
}

// heartbeatInterval is how long a backend may be silent before it gets a heartbeat.
const heartbeatInterval = 5 * time.Second

// lateBroadcasts is how long the reply of a call waits for the broadcasts before it, which
// come over another connection.
const lateBroadcasts = 250 * time.Millisecond

// broadcastTimeout bounds the time to connect to the broadcasts.
const broadcastTimeout = time.Second

func isZMQ(transport string) bool { return transport == ZMQ || transport == ZMQIPC }

// dialZMQ connects to the backend of a spec.
func (o *Options) dialZMQ(ctx context.Context, spec Spec, hooks Hooks) (Transport, error) {
	secret, err := o.reveal(spec, spec.Curve.Secret)
	if err != nil {
		return nil, notSent(err)
	}
	curve, err := zmtp.ClientCurve(spec.Curve.Server, secret)
	if err != nil {
		return nil, notSent(err)
	}
	opts := hootclient.Options{
		MaxBody: o.MaxMessage, Control: o.control(spec), Curve: curve,
		OnToolsChanged: hooks.Relist,
		OnInvalid:      func(err error) { hooks.Garbage(excerpt([]byte(err.Error()))) },
	}
	client, err := hootclient.Dial(ctx, strings.TrimPrefix(spec.URL, "zmq+"), opts)
	if err != nil {
		return nil, err
	}
	return &zmqTransport{Client: client, hooks: hooks, calls: map[hootproto.ID]*zmqCall{}}, nil
}

// Call implements Transport.
func (t *zmqTransport) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	answer, err := translate(ctx, t, out.Message)
	if errors.Is(err, hootclient.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", wire.ErrTooLarge, err)
	}
	return answer, err
}

func (t *zmqTransport) ping(ctx context.Context) error { return t.Heartbeat(ctx) }

// initialize asks for the tools of the backend, and listens to its broadcasts.
func (t *zmqTransport) initialize(ctx context.Context) (json.RawMessage, error) {
	catalog, service, err := t.Ready(ctx)
	if err != nil {
		return nil, err
	}
	t.listenToBroadcasts(ctx, catalog.Broadcasts)
	if service == "" {
		service = "backend"
	}
	return handshake(service, t.Protocol()), nil
}

// listenToBroadcasts listens to the backend's broadcasts, unless it does already.
func (t *zmqTransport) listenToBroadcasts(ctx context.Context, endpoint string) {
	t.mu.Lock()
	changed := endpoint != "" && endpoint != t.broadcasts
	t.broadcasts = endpoint
	t.mu.Unlock()
	if !changed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, broadcastTimeout)
	defer cancel()
	if err := t.Subscribe(ctx, endpoint, t.handleBroadcast); err != nil {
		t.hooks.Garbage(excerpt([]byte(err.Error())))
	}
}

// list asks for the tools.
func (t *zmqTransport) list(ctx context.Context) (json.RawMessage, error) {
	catalog, _, err := t.Ready(ctx)
	if err != nil {
		return nil, err
	}
	t.listenToBroadcasts(ctx, catalog.Broadcasts)
	t.leftOut.set(catalog.Invalid)
	definitions := make([]json.RawMessage, len(catalog.Tools))
	for i, entry := range catalog.Tools {
		definitions[i] = definitionOf(entry)
	}
	return listed(definitions), nil
}

// call calls a tool. Every call has a new request id, so that a late answer is
// never taken for that of another call.
func (t *zmqTransport) call(ctx context.Context, m wire.Message) (json.RawMessage, error) {
	request := hootclient.ToolCall{ID: hootproto.NewID()}
	request.Name, _ = rawjson.GetText(m.Params, "name")
	request.Arguments, _ = rawjson.Get(m.Params, "arguments")
	request.Traceparent, _ = rawjson.GetText(wire.Meta(m.Params), wire.MetaTraceParent)
	running := &zmqCall{id: m.ID, received: make(chan struct{}, notificationQueue)}
	t.mu.Lock()
	t.calls[request.ID] = running
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.calls, request.ID)
		t.mu.Unlock()
	}()
	outcome, err := t.Client.Call(ctx, request)
	if errors.Is(err, hootclient.ErrUnreadable) {
		return nil, wire.Errorf(wire.CodeInternal, "%s: %v", request.Name, err)
	}
	if err != nil {
		return nil, unknownOutcome(err)
	}
	running.await(ctx, outcome.Broadcasts)
	return resultOf(outcome), nil
}

// await waits until so many broadcasts were passed to the caller. They may be lost, so it does
// not wait for long.
func (c *zmqCall) await(ctx context.Context, broadcasts int) {
	if broadcasts == 0 {
		return
	}
	late := time.NewTimer(lateBroadcasts)
	defer late.Stop()
	for range min(broadcasts, cap(c.received)) {
		select {
		case <-c.received:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unknownOutcome hides what kind of error ended the connection during a call: the caller
// is told that the call's outcome is unknown, whatever the reason.
func unknownOutcome(err error) error {
	if errors.Is(err, hootclient.ErrLost) && !errors.Is(err, hootclient.ErrNotSent) {
		return textOnly{err}
	}
	return err
}

// Send implements Transport. Backends take no notifications: the client cancels
// their calls itself.
func (t *zmqTransport) Send(context.Context, wire.Message) error { return nil }

// Traits implements Transport. Older backends often have only one thread: they do not answer
// heartbeats while they work.
func (t *zmqTransport) Traits() Traits {
	return Traits{
		CancelsOnDisconnect: func() bool { return true },
		LeftOut:             t.leftOut.get,
		Protocol:            t.Protocol,
		HealthInterval:      heartbeatInterval,
		AnswersWhileBusy:    func() bool { return t.Protocol() != hootproto.Hoot01 },
		LastReceived:        t.LastReceived,
		Abort:               t.Abort,
	}
}

// SetRevision implements Transport. Backends have only one revision.
func (t *zmqTransport) SetRevision(string) {}

var _ Transport = (*zmqTransport)(nil)

// Broadcast is an event that a backend broadcasts.
type Broadcast struct {
	Upstream string
	kind     string
	data     json.RawMessage
}

// EventType is the type of the broadcast with a dot for its first underscore:
// artifact_created becomes "artifact.created". Unknown types, and those about the
// backend itself, begin with "backend.", so that no backend can forge other events.
func (b Broadcast) EventType() string { return b.kind }

// EventKey is the upstream's name.
func (b Broadcast) EventKey() string { return b.Upstream }

// MarshalJSON writes the broadcast with the name of the upstream.
func (b Broadcast) MarshalJSON() ([]byte, error) { return b.data, nil }

func newBroadcast(upstream, kind string, data json.RawMessage) Broadcast {
	data = rawjson.SetText(rawjson.Delete(data, "type"), "upstream", upstream)
	return Broadcast{upstream, broadcastType(kind), data}
}

func broadcastType(kind string) string {
	switch kind {
	case "progress":
		return "job.progress"
	case "artifact_created", "job_state_changed", "transport_state_changed", "marker_reached", "beat_tick",
		"region_entered", "region_left", "config_update", "script_invalidate":
		return strings.Replace(kind, "_", ".", 1)
	}
	return "backend." + clean(kind[:min(len(kind), 64)])
}

// handleBroadcast takes a broadcast. Progress and logs of a call in progress go to
// its caller; everything else is published as an event.
func (t *zmqTransport) handleBroadcast(b hootproto.RawBroadcast) {
	switch b.Type {
	case "progress", "log":
		known, err := b.Decode()
		if err != nil {
			t.hooks.Garbage(excerpt([]byte(err.Error())))
			return
		}
		if t.routeToCall(known) {
			return
		}
		if p, ok := known.(hootproto.Progress); ok { // as in the events of our own jobs
			b.Raw = rawjson.Set(b.Raw, "fraction", jsonNumber(p.Percent))
		}
	case "shutdown":
		t.hooks.CheckHealth()
	}
	t.hooks.Broadcast(b.Type, b.Raw)
}

// routeToCall passes progress and logs to the call that they belong to, if it is
// one of ours.
func (t *zmqTransport) routeToCall(b hootproto.Broadcast) bool {
	var id string
	switch n := b.(type) {
	case hootproto.Progress:
		id = n.JobID
	case hootproto.Log:
		id = n.JobID
	}
	request, err := hootproto.ParseID(id)
	if err != nil {
		return false
	}
	t.mu.Lock()
	call, found := t.calls[request]
	t.mu.Unlock()
	if !found {
		return false
	}
	switch n := b.(type) {
	case hootproto.Progress:
		t.hooks.Received(call.id, wire.Notification(wire.NoteProgress, progressParams(call.id, n)))
	case hootproto.Log:
		params := rawjson.SetText(rawjson.SetText(nil, "level", n.Level), "data", n.Message)
		if n.Source != "" {
			params = rawjson.SetText(params, "logger", n.Source)
		}
		t.hooks.Received(call.id, wire.Notification(wire.NoteMessage, params))
	}
	select {
	case call.received <- struct{}{}:
	default: // it has more than a reply waits for
	}
	return true
}

// progressParams are the params of the MCP notification. Our progress tokens are
// the request ids.
func progressParams(call wire.ID, p hootproto.Progress) json.RawMessage {
	done, total := p.Percent, 1.0
	if p.Done > 0 {
		done, total = p.Done, p.Total
	}
	params := rawjson.Set(nil, wire.MetaProgressToken, json.RawMessage(call))
	params = rawjson.Set(params, "progress", jsonNumber(done))
	if total > 0 {
		params = rawjson.Set(params, "total", jsonNumber(total))
	}
	return rawjson.SetText(params, "message", p.Message)
}

func jsonNumber(n float64) json.RawMessage { return strconv.AppendFloat(nil, n, 'g', -1, 64) }

// This file converts the tools and results of backends to MCP.

// definitionOf is the MCP definition of a tool.
func definitionOf(t hootproto.Tool) json.RawMessage {
	d := rawjson.SetText(nil, "name", t.Name)
	if t.Title != "" {
		d = rawjson.SetText(d, "title", t.Title)
	}
	d = rawjson.SetText(d, "description", t.Description)
	input := t.InputSchema
	if rawjson.IsNull(input) { // without a schema all arguments are allowed
		input = json.RawMessage(`{"type":"object"}`)
	}
	d = rawjson.Set(d, "inputSchema", input)
	if !rawjson.IsNull(t.OutputSchema) {
		d = rawjson.Set(d, "outputSchema", t.OutputSchema)
	}
	var hints json.RawMessage
	for _, hint := range []struct {
		name  string
		value bool
	}{
		{"readOnlyHint", t.ReadOnly}, {"idempotentHint", t.Idempotent || t.ReadOnly},
		{"destructiveHint", t.Destructive && !t.ReadOnly}, {"openWorldHint", !t.ClosedWorld},
	} {
		hints = rawjson.Set(hints, hint.name, jsonBool(hint.value))
	}
	return rawjson.Set(d, "annotations", hints)
}

func jsonBool(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

// resultOf is the MCP result of a call: text and data, or an error with its code.
func resultOf(outcome hootproto.Outcome) json.RawMessage {
	if outcome.Err != nil {
		return errorResult(outcome.Err)
	}
	output := outcome.Output
	text := output.Text
	if text == "" && len(output.Data) > 0 {
		text = string(output.Data)
	}
	content := []byte{'['}
	if text != "" || len(output.Attachments) == 0 {
		content = append(content, textBlock(text)...)
	}
	for i, a := range output.Attachments {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, attachmentBlock(a, i+1)...)
	}
	result := rawjson.Set(nil, "content", append(content, ']'))
	switch data := output.Data; {
	case len(data) == 0:
		return result
	case rawjson.IsObject(data):
		return rawjson.Set(result, "structuredContent", data)
	default: // structuredContent must be an object
		return rawjson.Set(result, "structuredContent", rawjson.Set(nil, "result", data))
	}
}

// maxDetails is the largest size of error details that are part of the text.
const maxDetails = 2 << 10

// errorResult is the result of a tool that failed, as our own tools return it: the
// code and the message as text, and the whole error in _meta.
func errorResult(e *hootproto.ToolError) json.RawMessage {
	text := e.Code + ": " + e.Message
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	fault := rawjson.SetText(rawjson.SetText(nil, "code", e.Code), "message", e.Message)
	if e.Hint != "" {
		fault = rawjson.SetText(fault, "hint", e.Hint)
	}
	if len(e.Details) > 0 && !rawjson.IsNull(e.Details) {
		fault = rawjson.Set(fault, "details", e.Details)
		var line bytes.Buffer
		if len(e.Details) <= maxDetails && json.Compact(&line, e.Details) == nil {
			text += "\n" + line.String()
		}
	}
	content := append(append([]byte{'['}, textBlock(text)...), ']')
	result := rawjson.Set(rawjson.Set(nil, "content", content), "isError", jsonBool(true))
	return wire.SetMeta(result, rawjson.Set(nil, tool.ErrorKey, fault))
}

func textBlock(text string) json.RawMessage {
	return rawjson.SetText(rawjson.SetText(nil, "type", "text"), "text", text)
}

// nameKey is the member of _meta with the name of an attachment, for which embedded
// resources, images and sounds have no field.
const nameKey = "luanette/name"

// attachmentBlock is the content block of an attachment, the nth of its result.
func attachmentBlock(a hootproto.Attachment, n int) json.RawMessage {
	data := base64.StdEncoding.EncodeToString(a.Data)
	kind, _, _ := strings.Cut(a.MimeType, "/")
	switch {
	case len(a.Data) > 0 && (kind == "image" || kind == "audio"):
		block := rawjson.SetText(rawjson.SetText(nil, "type", kind), "data", data)
		return withName(rawjson.SetText(block, "mimeType", a.MimeType), a.Name)
	case len(a.Data) == 0 && a.Text == "" && a.URI != "":
		block := rawjson.SetText(rawjson.SetText(nil, "type", "resource_link"), "uri", a.URI)
		return withType(rawjson.SetText(block, "name", cmp.Or(a.Name, a.URI)), a.MimeType)
	}
	resource := withType(rawjson.SetText(nil, "uri", attachmentURI(a, n)), a.MimeType)
	if len(a.Data) > 0 {
		resource = rawjson.SetText(resource, "blob", data)
	} else {
		resource = rawjson.SetText(resource, "text", a.Text)
	}
	return rawjson.Set(rawjson.SetText(nil, "type", "resource"), "resource", withName(resource, a.Name))
}

// attachmentURI is the URI of an embedded resource, which MCP requires: the
// attachment's own, or one made of its name or number.
func attachmentURI(a hootproto.Attachment, n int) string {
	if a.URI != "" {
		return a.URI
	}
	return "attachment:///" + url.PathEscape(cmp.Or(a.Name, strconv.Itoa(n)))
}

func withName(object json.RawMessage, name string) json.RawMessage {
	if name == "" {
		return object
	}
	return rawjson.Set(object, "_meta", rawjson.SetText(nil, nameKey, name))
}

func withType(object json.RawMessage, mimeType string) json.RawMessage {
	if mimeType == "" {
		return object
	}
	return rawjson.SetText(object, "mimeType", mimeType)
}
