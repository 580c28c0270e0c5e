// Package chatapi serves the HTTP API of the chat: it accepts messages and returns
// answers, in the response, as a stream or by webhook, and serves the settings of people
// and organisations. Package conversation implements what the API offers.
package chatapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/delivery"
)

// Options are the options of a Handler. The zero value of each field but Deliveries is usable.
type Options struct {
	// Debug adds tool_use and tool_result to streams, with the arguments and results of
	// tools.
	Debug     bool
	Keepalive time.Duration     // interval of keepalive events on a silent stream; zero means 15 s
	Rate      int               // messages per minute and person; zero means 300
	Webhooks  http.RoundTripper // makes requests to callback URLs, and refuses those that are not allowed; nil means http.DefaultTransport
	// CheckHost refuses hosts to which Webhooks makes no requests; nil refuses none.
	CheckHost func(host string) error
	// Model is the model that answers, for people, with those that a message can choose, or
	// why there is none; nil: nothing is known of it.
	Model func() (usual llm.About, all []llm.About, err error)
	// Transcribe returns what is said in a sound; nil refuses voice messages.
	Transcribe func(ctx context.Context, sound llm.Media) (string, error)
	Token      secret.Text // sent to the callbacks of Receivers as authentication; may be empty
	// Secret signs what is sent to them, whsec_ and base64; empty signs nothing.
	Secret secret.Text
	// Deliveries send the outcomes of turns, which the service stores by Deliver.
	Deliveries *delivery.Store
	// Receivers are the origins of callbacks that get the token, such as
	// https://gateway.example: callers choose the addresses of their callbacks.
	Receivers []string
	Usage     UsageReporter // nil means that nothing is counted
	// Audit records what callers read and delete of other people; nil records nothing.
	Audit   func(ctx context.Context, action, subject string, detail []byte)
	Log     *slog.Logger
	Clock   clock.Clock
	Version string
}

// Handler serves everything under /api/v1 that concerns conversations.
type Handler struct {
	service *turn.Service
	options Options
	rates   queue.RateLimiter // by person
	// receivers are the origins of Options.Receivers.
	receivers []string
	followed  sync.Map        // IDs of turns whose progress is sent
	hooks     sync.WaitGroup  // webhooks in progress
	ending    context.Context // of webhooks, until Close
	end       context.CancelFunc
}

// New makes the handler of a conversation service.
func New(service *turn.Service, o Options) *Handler {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	if o.Rate <= 0 {
		o.Rate = 300
	}
	if o.Webhooks == nil {
		o.Webhooks = http.DefaultTransport
	}
	if o.CheckHost == nil {
		o.CheckHost = func(string) error { return nil }
	}
	if o.Usage == nil {
		o.Usage = nothingUsed{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	d := &Handler{service: service, options: o, receivers: origins(o.Receivers)}
	d.ending, d.end = context.WithCancel(context.Background())
	o.Deliveries.Register(callbacks, d.channel())
	service.OnResume(d.callBack)
	return d
}

// Close stops webhooks about progress and waits for them. They are sent again when the turn
// runs again.
func (d *Handler) Close() {
	d.end()
	d.hooks.Wait()
}

// route is one endpoint. The OpenAPI document is made from the same table.
type route struct {
	method, path string
	scope        principal.Scope
	summary      string // for the OpenAPI document
	endpoint
}

// endpoint is what a route does. The bodies are zero values of their types; nil means none.
type endpoint struct {
	body, response any
	status         int                                   // of success
	answer         func(*Handler, *request) (any, error) // the body of the response; nil: it was written
}

// request is a request to an endpoint.
type request struct {
	*http.Request
	w      http.ResponseWriter
	id     string         // in the log, the response and its headers
	person profile.Person // or the organisation that the path names
	turn   *turn.Turn     // that answers it, whose outcome is logged
}

// body reads the body.
func (r *request) body() ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLong(over.Limit)
	case err != nil:
		return nil, fault.Wrap(fault.InvalidParams, err, "read body")
	}
	return body, nil
}

// read decodes the body.
func (r *request) read(into any) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	return httpjson.Decode(body, into)
}

// get is an endpoint that responds with what f returns.
func get[A any](f func(*Handler, *request) (A, error)) endpoint {
	return endpoint{nil, *new(A), http.StatusOK, func(d *Handler, r *request) (any, error) { return f(d, r) }}
}

// reads is an endpoint that decodes the body itself.
func reads[A any](body any, f func(*Handler, *request) (A, error)) endpoint {
	e := get(f)
	e.body = body
	return e
}

// put is an endpoint that passes the decoded body to f.
func put[B, A any](f func(*Handler, *request, B) (A, error)) endpoint {
	return reads(*new(B), func(d *Handler, r *request) (a A, err error) {
		var body B
		if err := r.read(&body); err != nil {
			return a, err
		}
		return f(d, r, body)
	})
}

// writes is an endpoint that writes the response itself.
func writes(body, response any, f func(*Handler, *request) error) endpoint {
	return endpoint{body, response, http.StatusOK, func(d *Handler, r *request) (any, error) { return nil, f(d, r) }}
}

// with is the endpoint with another status of success.
func (e endpoint) with(status int) endpoint {
	e.status = status
	return e
}

// routes lists every endpoint.
func routes() []route {
	const (
		people = "/api/v1/orgs/{org}/users/{user}"
		admin  = "/api/v1/admin/orgs/{org}"
		person = admin + "/users/{user}"
	)
	return slices.Concat(messageRoutes(), conversationRoutes(people), []route{
		{"GET", "/api/v1/usage", principal.Chat, "Tokens and cost by day, person and turn, and the budgets (days, turns, org, user_id)", get((*Handler).usageReport)},
		{"GET", "/api/v1/model", principal.Chat, "The model that answers, and what it takes", get((*Handler).model)},
		{"GET", "/api/v1/languages", principal.Chat, "Languages that can be chosen by name", get((*Handler).languages)},
		{"GET", people + "/preferences", principal.Chat, "A person's preferences", get((*Handler).preferences)},
		{"PUT", people + "/preferences", principal.Chat, "Change a person's preferences", put((*Handler).setPreferences)},
		{"GET", people + "/history", principal.Chat, "A person's history, the oldest first (limit, offset)", get((*Handler).history)},
		{"GET", people + "/modes", principal.Chat, "The modes that a person can choose, and the chosen one", get((*Handler).personModes)},
		{"PUT", people + "/modes", principal.Chat, "Choose a mode; empty chooses none", put((*Handler).chooseMode)},
		{"DELETE", people + "/history", principal.Chat, "Delete a person's history", get((*Handler).forget)},
	}, ownRoutes(admin, "the organisation's", "the default"), []route{
		{"GET", admin + "/config", principal.Org, "The organisation's settings", get((*Handler).settings)},
		{"PUT", admin + "/config", principal.Org, "Change the organisation's settings", reads(profile.Settings{}, (*Handler).setSettings)},
		{"DELETE", admin + "/config", principal.Org, "Reset the organisation's settings to the defaults", get((*Handler).resetSettings)},
		{"GET", admin + "/modes", principal.Org, "The names of the organisation's modes", get((*Handler).modes)},
		{"GET", admin + "/modes/{mode}", principal.Org, "One mode", get((*Handler).mode)},
		{"PUT", admin + "/modes/{mode}", principal.Org, "Define a mode, or replace it", put((*Handler).setMode)},
		{"DELETE", admin + "/modes/{mode}", principal.Org, "Remove a mode", get((*Handler).removeMode)},
		{"GET", admin + "/callbacks", principal.Org, "The latest 200 answers to callbacks of the organisation, with their tries (state: waiting, delivered or failed)", get((*Handler).deliveries)},
		{"GET", admin + "/usage", principal.Org, "Usage of the organisation's people (days)", get((*Handler).usage)},
	}, ownRoutes(person, "a person's", "the organisation's or the default"), []route{
		{"GET", person + "/memory", principal.Org, "What the agent remembers about a person", get((*Handler).memory)},
		{"DELETE", person + "/memory", principal.Org, "Delete what the agent remembers about a person", get((*Handler).clearMemory)},
		{"GET", person + "/mode", principal.Org, "The mode that a person has chosen", get((*Handler).chosenMode)},
		{"PUT", person + "/mode", principal.Org, "Choose a mode for a person", put((*Handler).chooseMode)},
		{"DELETE", person + "/history", principal.Org, "Delete a person's history", get((*Handler).forget)},
	})
}

// ownRoutes are the endpoints of what an organisation or a person can have: servers and
// prompts.
func ownRoutes(of, whose, otherwise string) []route {
	server := of + "/mcp-servers/{server}"
	patch := reads(ServerView{}, (*Handler).patchServer)
	return []route{
		{"GET", of + "/mcp-servers", principal.Org, "List " + whose + " servers (discover=true connects to each)", get((*Handler).servers)},
		{"PUT", of + "/mcp-servers", principal.Org, "Replace " + whose + " servers", put((*Handler).replaceServers)},
		{"POST", of + "/mcp-servers", principal.Org, "Add one of " + whose + " servers, or change the given fields of one", patch},
		{"PUT", server, principal.Org, "Replace one of " + whose + " servers", put((*Handler).putServer)},
		{"PATCH", server, principal.Org, "Change the given fields of one of " + whose + " servers", patch},
		{"DELETE", server, principal.Org, "Remove one of " + whose + " servers", get((*Handler).removeServer)},
		{"GET", of + "/prompt-overrides", principal.Org, "List " + whose + " prompts in place of " + otherwise, get((*Handler).prompts)},
		{"PUT", of + "/prompt-overrides", principal.Org, "Change some of " + whose + " prompts; null resets one to " + otherwise, put((*Handler).setPrompts)},
		{"DELETE", of + "/prompt-overrides", principal.Org, "Reset " + whose + " prompts to " + otherwise, get((*Handler).resetPrompts)},
	}
}

// conversationRoutes are the endpoints of the conversations of people.
func conversationRoutes(people string) []route {
	created := put((*Handler).copyConversation).with(http.StatusCreated)
	return []route{
		{"GET", people + "/conversations", principal.Chat, "A person's conversations, the most recently used first, and those that others share", get((*Handler).conversations)},
		{"GET", people + "/conversation", principal.Chat, "The latest messages of one conversation, with the calls of tools (id, limit)", get((*Handler).conversation)},
		{"DELETE", people + "/conversation", principal.Chat, "Delete one conversation (id)", get((*Handler).forgetConversation)},
		{"POST", people + "/conversation/copy", principal.Chat, "Copy one conversation, also one that somebody shares to use it", created},
	}
}

// messageRoutes are the endpoints of messages and their answers.
func messageRoutes() []route {
	stream := writes(Request{}, StreamEvent{}, (*Handler).stream)
	reattach := writes(nil, StreamEvent{}, (*Handler).reattach)
	callback := reads(Request{}, (*Handler).callback).with(http.StatusAccepted)
	media := writes(nil, []byte{}, (*Handler).media)
	return []route{
		{"POST", "/api/v1/chat", principal.Chat, "Send a message and wait for the answer", reads(Request{}, (*Handler).answer)},
		{"POST", "/api/v1/chat/stream", principal.Chat, "Send a message and receive the answer as server-sent events", stream},
		{"POST", "/api/v1/chat/callback", principal.Chat, "Send a message and receive the answer at progress_callback_url", callback},
		{"GET", "/api/v1/chat/{message}", principal.Chat, "Wait for the answer to a message that was sent before", get((*Handler).result)},
		{"GET", "/api/v1/chat/{message}/stream", principal.Chat, "Receive the answer to a message that was sent before as server-sent events, from the first", reattach},
		{"GET", "/api/v1/chat/{message}/media/{media}", principal.Chat, "An image, a sound or a file of a message or of its answer", media},
		{"GET", "/api/v1/chat/{message}/callback", principal.Chat, "How far the answer is on its way to the callback, with all tries", get((*Handler).delivery)},
		{"POST", "/api/v1/chat/{message}/callback", principal.Chat, "Send an answer that did not arrive to the callback again, now", get((*Handler).deliverAgain)},
		{"POST", "/api/v1/chat/{message}/stop", principal.Chat, "Stop an answer; what was said so far is kept and returned", get((*Handler).stop)},
	}
}

// Routes returns the paths of this API and the scope that each needs.
func (d *Handler) Routes() (list []principal.Route) {
	for _, route := range routes() {
		served := principal.Route{Pattern: route.method + " " + route.path, Scope: route.scope, Refuse: refuseAs, Write: d.handle(route), MaxBody: maxBody}
		switch route.body.(type) {
		case nil:
			served.Body = principal.NoBody
		case Request:
			served.MaxBody = maxWithMedia
		}
		list = append(list, served)
	}
	return append(list,
		principal.Route{Pattern: "GET /api/v1/openapi.json", Scope: principal.Open, Refuse: refuseAs, Serve: func(*http.Request) (any, error) {
			return document(d.options.Version), nil
		}},
		principal.Route{Pattern: "/api/v1/", Scope: principal.Open, Body: principal.NoBody, Refuse: refuseAs, Write: noEndpoint(list)})
}

// noEndpoint refuses what no route serves, with the methods of the path if it has others.
func noEndpoint(list []principal.Route) func(http.ResponseWriter, *http.Request) error {
	mux, methods := http.NewServeMux(), map[string]bool{}
	for _, route := range list {
		method, _, _ := strings.Cut(route.Pattern, " ")
		methods[method] = true
		mux.Handle(route.Pattern, http.NotFoundHandler())
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			return fault.New(fault.NotFound, "no endpoint %s %s", r.Method, r.URL.Path).WithHint("GET /api/v1/openapi.json lists the endpoints")
		}
		use := strings.Join(allowed, ", ")
		w.Header().Set("Allow", use)
		httpjson.JSON(w, http.StatusMethodNotAllowed, Failure{
			Error: "MethodNotAllowedError", Code: "METHOD_NOT_ALLOWED", RequestID: failure.RequestID(w), Message: fmt.Sprintf("%s does not take %s: use %s", r.URL.Path, r.Method, use),
		})
		return nil
	}
}

// handle serves an endpoint. The request is authorized already.
func (d *Handler) handle(route route) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if route.scope == principal.Org && r.Method != http.MethodGet {
			d.options.Log.InfoContext(r.Context(), "admin_action", "event", "admin_action", "key", principal.Of(r.Context()).Name, "method", r.Method, "path", r.URL.Path)
		}
		q := &request{Request: r, w: w, id: failure.RequestID(w), person: profile.Person{Org: r.PathValue("org"), User: r.PathValue("user")}}
		err := q.checkPerson()
		var answer any
		if err == nil {
			answer, err = route.answer(d, q)
		}
		if err != nil {
			if q.turn == nil {
				d.log(r.Context(), slog.LevelWarn, "request_error", q.id, append(failed(err), "path", r.URL.Path)...)
			}
			refuse(w, err) // by its own kind, not only by a status
		} else if answer != nil {
			httpjson.JSON(w, route.status, answer)
		}
		return nil
	}
}

// checkPerson checks the names in the path, if it has any.
func (r *request) checkPerson() error {
	p := r.person
	switch {
	case p.Org == "" && p.User == "" && !strings.Contains(r.Pattern, "{org}"):
		return nil
	case p.User == "": // an organisation's name is like a person's
		p.User = "-"
	}
	return p.Check()
}

// Failure is the body of every error.
type Failure struct {
	Error      string `json:"error"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	RequestID  string `json:"request_id" doc:"in the log of the server"`
	RetryAfter int    `json:"retry_after_ms,omitempty"`
	MessageKey string `json:"message_key,omitempty" doc:"of MOVED: with it the message is the same message"`
}

// word is how clients know a kind of failure.
type word struct {
	status int
	name   string
	code   string
	retry  int // seconds after which a retry may succeed
}

var words = map[failure.Kind]word{
	failure.Internal:     {http.StatusInternalServerError, "InternalError", "INTERNAL_ERROR", 0},
	failure.Invalid:      {http.StatusBadRequest, "ValidationError", "VALIDATION_ERROR", 0},
	failure.InvalidAudio: {http.StatusBadRequest, "AudioTranscriptionError", "AUDIO_TRANSCRIPTION_ERROR", 0},
	failure.NoHearing:    {http.StatusServiceUnavailable, "AudioTranscriptionError", "AUDIO_TRANSCRIPTION_ERROR", 5},
	failure.TooLarge:     {http.StatusRequestEntityTooLarge, "RequestTooLargeError", "REQUEST_BODY_TOO_LARGE", 0},
	failure.Unauthorized: {http.StatusUnauthorized, "AuthenticationError", "AUTHENTICATION_ERROR", 0},
	failure.Forbidden:    {http.StatusForbidden, "AuthorizationError", "AUTHORIZATION_ERROR", 0},
	failure.NotFound:     {http.StatusNotFound, "NotFoundError", "NOT_FOUND", 0},
	failure.Conflict:     {http.StatusConflict, "ConflictError", "CONFLICT", 0},
	failure.Busy:         {http.StatusTooManyRequests, "QueueDepthError", "QUEUE_DEPTH_EXCEEDED", 5},
	failure.RateLimited:  {http.StatusTooManyRequests, "RateLimitError", "RATE_LIMIT_EXCEEDED", 10},
	failure.OverBudget:   {http.StatusTooManyRequests, "BudgetError", "BUDGET_EXCEEDED", 0},
	failure.ModelLimited: {http.StatusTooManyRequests, "ModelLimitError", "MODEL_RATE_LIMITED", 10},
	failure.ModelBusy:    {http.StatusServiceUnavailable, "ModelUnavailableError", "MODEL_UNAVAILABLE", 5},
	failure.ModelKey:     {http.StatusBadGateway, "ModelKeyError", "MODEL_KEY_REFUSED", 0},
	failure.ModelUnset:   {http.StatusServiceUnavailable, "ModelConfigError", "MODEL_NOT_CONFIGURED", 0},
	failure.ModelBroken:  {http.StatusBadGateway, "ClaudeAPIError", "CLAUDE_API_ERROR", 5},
	failure.ModelFailed:  {http.StatusBadGateway, "ClaudeAPIError", "CLAUDE_API_ERROR", 0},
	failure.ModelRefused: {http.StatusRequestEntityTooLarge, "ClaudeRequestTooLargeError", "CLAUDE_REQUEST_BODY_TOO_LARGE", 0},
	failure.TimedOut:     {http.StatusGatewayTimeout, "TimeoutError", "TIMEOUT_ERROR", 0},
	failure.Unavailable:  {http.StatusServiceUnavailable, "UnavailableError", "UNAVAILABLE", 5},
	failure.Moved:        {http.StatusServiceUnavailable, "MovedError", "MOVED", 2},
}

// failureOf converts an error for clients.
func failureOf(err error) (body Failure, status int) {
	w := words[failure.Of(err)]
	f := Failure{Error: w.name, Code: w.code, Message: failure.Message(err), RetryAfter: w.retry * 1000}
	if after, ok := principal.RetryAfter(err); ok {
		f.RetryAfter = int(after.Milliseconds())
	}
	var to movedTo
	if errors.As(err, &to) {
		f.MessageKey = to.key
	}
	return f, w.status
}

// refuseAs responds to a request that was refused before it reached this package.
func refuseAs(w http.ResponseWriter, _ *http.Request, status int, err error) {
	switch status {
	case http.StatusUnauthorized:
		err = failure.As(failure.Unauthorized, err)
	case http.StatusTooManyRequests:
		err = failure.As(failure.RateLimited, err)
	}
	refuse(w, err)
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) {
	body, status := failureOf(err)
	body.RequestID = failure.RequestID(w)
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", principal.RetryHeader(time.Duration(body.RetryAfter)*time.Millisecond))
	}
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	httpjson.JSON(w, status, body)
}

// The actions of the audit log. Their subject is whose it was, and the conversation.
const (
	auditRead         = "conversation.read"
	auditCopy         = "conversation.copy"
	auditDelete       = "conversation.delete"
	auditReadMemory   = "memory.read"
	auditDeleteMemory = "memory.delete"
)

// maxAudited is how many bytes of a conversation's name are recorded.
const maxAudited = 200

// audit records that a caller who is not that person reads, copies or deletes what the person said
// to the agent, or what the agent remembers of it: keys of chat programs and of administrators, and
// those with whom it is shared.
func (d *Handler) audit(r *http.Request, action string, p profile.Person, id string) {
	who := principal.Of(r.Context())
	if d.options.Audit == nil || who.ID == principal.LocalID || who.User == p.User {
		return
	}
	subject := strings.TrimSpace(p.String() + " " + id[:min(len(id), maxAudited)])
	d.options.Audit(r.Context(), action, strings.ToValidUTF8(subject, ""), nil)
}
