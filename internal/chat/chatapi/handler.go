// Package chatapi serves the HTTP API of the chat: it accepts messages and returns
// answers, in the response, as a stream or by webhook, and serves the settings of people
// and organisations. Package conversation implements what the API offers.
package chatapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/principal"
)

// Options are the options of a Handler. The zero value of each field is usable.
type Options struct {
	Browsers netguard.Browsers // browser origins that may send requests
	// Debug adds tool_use and tool_result to streams, with the arguments and results of
	// tools.
	Debug     bool
	Keepalive time.Duration     // interval of keepalive events on a silent stream; zero means 15 s
	Rate      int               // messages per minute and person; zero means 300
	Webhooks  http.RoundTripper // makes requests to callback URLs, and refuses those that are not allowed; nil means http.DefaultTransport
	// Model is the model that answers, for people; ModelError is why there is none.
	Model      llm.About
	Models     []llm.About // that a message can choose, Model first; nil means only Model
	ModelError error
	// Transcribe returns what is said in a sound; nil refuses voice messages.
	Transcribe func(ctx context.Context, sound llm.Media) (string, error)
	Token      secret.Text // sent to the callbacks of Receivers as authentication; may be empty
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
	service *conversation.Service
	options Options
	rates   rates
	// receivers are the origins of Options.Receivers.
	receivers []string
	hooks     sync.WaitGroup // webhooks in progress
	ending    context.Context
	end       context.CancelFunc
}

// New makes the handler of a conversation service.
func New(service *conversation.Service, o Options) *Handler {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	if o.Rate <= 0 {
		o.Rate = 300
	}
	if o.Webhooks == nil {
		o.Webhooks = http.DefaultTransport
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
	d := &Handler{service: service, options: o, rates: rates{most: o.Rate, clock: o.Clock}, receivers: origins(o.Receivers)}
	d.ending, d.end = context.WithCancel(context.Background())
	service.OnResume(d.callBack)
	return d
}

// Close stops webhooks and waits for them. They are sent again when the turn runs again.
func (d *Handler) Close() {
	d.end()
	d.hooks.Wait()
}

// route is one endpoint. The OpenAPI document is made from the same table.
type route struct {
	method, path   string
	scope          principal.Scope
	summary        string // summary for the OpenAPI document
	body, response any    // zero values of the types of the bodies; nil means none
	status         int    // of success; zero means 200
	does           func(d *Handler, w http.ResponseWriter, r *http.Request) error
}

// routes lists every endpoint.
func routes() []route {
	const (
		people = "/api/v1/orgs/{org}/users/{user}"
		admin  = "/api/v1/admin/orgs/{org}"
		person = admin + "/users/{user}"
	)
	return slices.Concat(messageRoutes(), conversationRoutes(people), []route{
		{"GET", "/api/v1/usage", principal.Chat, "Tokens and cost by day, person and turn, and the budgets (days, turns, org, user_id)", nil, UsageReport{}, 0, (*Handler).usageReport},
		{"GET", "/api/v1/model", principal.Chat, "The model that answers, and what it takes", nil, Model{}, 0, (*Handler).model},
		{"GET", "/api/v1/languages", principal.Chat, "Languages that can be chosen by name", nil, Languages{}, 0, (*Handler).languages},
		{"GET", people + "/preferences", principal.Chat, "A person's preferences", nil, Preferences{}, 0, (*Handler).preferences},
		{"PUT", people + "/preferences", principal.Chat, "Change a person's preferences", Preferences{}, Preferences{}, 0, (*Handler).setPreferences},
		{"GET", people + "/history", principal.Chat, "A person's history, the oldest first (limit, offset)", nil, History{}, 0, (*Handler).history},
		{"GET", people + "/modes", principal.Chat, "The modes that a person can choose, and the chosen one", nil, PersonModes{}, 0, (*Handler).personModes},
		{"PUT", people + "/modes", principal.Chat, "Choose a mode; empty chooses none", ChosenMode{}, ChosenMode{}, 0, (*Handler).chooseMode},
		{"DELETE", people + "/history", principal.Chat, "Delete a person's history", nil, Removed{}, 0, (*Handler).forget},

		{"GET", admin + "/mcp-servers", principal.Org, "The organisation's servers (discover=true connects to each)", nil, Servers{}, 0, (*Handler).servers},
		{"PUT", admin + "/mcp-servers", principal.Org, "Replace the organisation's servers", []conversation.Server{}, Servers{}, 0, (*Handler).replaceServers},
		{"POST", admin + "/mcp-servers", principal.Org, "Add one server, or change the given fields of one", conversation.Server{}, Servers{}, 0, (*Handler).patchServer},
		{"PUT", admin + "/mcp-servers/{server}", principal.Org, "Replace one server", conversation.Server{}, Servers{}, 0, (*Handler).putServer},
		{"PATCH", admin + "/mcp-servers/{server}", principal.Org, "Change the given fields of one server", conversation.Server{}, Servers{}, 0, (*Handler).patchServer},
		{"DELETE", admin + "/mcp-servers/{server}", principal.Org, "Remove one server", nil, Removed{}, 0, (*Handler).removeServer},
		{"GET", admin + "/config", principal.Org, "The organisation's settings", nil, conversation.Settings{}, 0, (*Handler).settings},
		{"PUT", admin + "/config", principal.Org, "Change the organisation's settings", conversation.Settings{}, conversation.Settings{}, 0, (*Handler).setSettings},
		{"DELETE", admin + "/config", principal.Org, "Reset the organisation's settings to the defaults", nil, conversation.Settings{}, 0, (*Handler).resetSettings},
		{"GET", admin + "/prompt-overrides", principal.Org, "The organisation's prompts in place of the defaults", nil, Overrides{}, 0, (*Handler).prompts},
		{"PUT", admin + "/prompt-overrides", principal.Org, "Change some prompts; null resets one to the default", map[agent.Slot]*string{}, Overrides{}, 0, (*Handler).setPrompts},
		{"DELETE", admin + "/prompt-overrides", principal.Org, "Reset the organisation's prompts to the defaults", nil, Overrides{}, 0, (*Handler).resetPrompts},
		{"GET", admin + "/modes", principal.Org, "The names of the organisation's modes", nil, Modes{}, 0, (*Handler).modes},
		{"GET", admin + "/modes/{mode}", principal.Org, "One mode", nil, conversation.Mode{}, 0, (*Handler).mode},
		{"PUT", admin + "/modes/{mode}", principal.Org, "Define a mode, or replace it", conversation.Mode{}, conversation.Mode{}, 0, (*Handler).setMode},
		{"DELETE", admin + "/modes/{mode}", principal.Org, "Remove a mode", nil, Removed{}, 0, (*Handler).removeMode},
		{"GET", admin + "/usage", principal.Org, "Usage of the organisation's people (days)", nil, Usage{}, 0, (*Handler).usage},

		{"GET", person + "/mcp-servers", principal.Org, "A person's servers (discover=true connects to each)", nil, Servers{}, 0, (*Handler).servers},
		{"PUT", person + "/mcp-servers", principal.Org, "Replace a person's servers", []conversation.Server{}, Servers{}, 0, (*Handler).replaceServers},
		{"POST", person + "/mcp-servers", principal.Org, "Add one server of a person, or change the given fields of one", conversation.Server{}, Servers{}, 0, (*Handler).patchServer},
		{"PUT", person + "/mcp-servers/{server}", principal.Org, "Replace one server of a person", conversation.Server{}, Servers{}, 0, (*Handler).putServer},
		{"PATCH", person + "/mcp-servers/{server}", principal.Org, "Change the given fields of one server of a person", conversation.Server{}, Servers{}, 0, (*Handler).patchServer},
		{"DELETE", person + "/mcp-servers/{server}", principal.Org, "Remove one server of a person", nil, Removed{}, 0, (*Handler).removeServer},
		{"GET", person + "/prompt-overrides", principal.Org, "A person's prompts in place of the organisation's and the defaults", nil, Overrides{}, 0, (*Handler).prompts},
		{"PUT", person + "/prompt-overrides", principal.Org, "Change some prompts; null resets one to the organisation's or the default", map[agent.Slot]*string{}, Overrides{}, 0, (*Handler).setPrompts},
		{"DELETE", person + "/prompt-overrides", principal.Org, "Reset a person's prompts", nil, Overrides{}, 0, (*Handler).resetPrompts},
		{"GET", person + "/memory", principal.Org, "What the agent remembers about a person", nil, Memory{}, 0, (*Handler).memory},
		{"DELETE", person + "/memory", principal.Org, "Delete what the agent remembers about a person", nil, Removed{}, 0, (*Handler).clearMemory},
		{"GET", person + "/mode", principal.Org, "The mode that a person has chosen", nil, ChosenMode{}, 0, (*Handler).chosenMode},
		{"PUT", person + "/mode", principal.Org, "Choose a mode for a person", ChosenMode{}, ChosenMode{}, 0, (*Handler).chooseMode},
		{"DELETE", person + "/history", principal.Org, "Delete a person's history", nil, Removed{}, 0, (*Handler).forget},
	})
}

// conversationRoutes are the endpoints of the conversations of people.
func conversationRoutes(people string) []route {
	return []route{
		{"GET", people + "/conversations", principal.Chat, "A person's conversations, the most recently used first, and those that others share", nil, Conversations{}, 0, (*Handler).conversations},
		{"GET", people + "/conversation", principal.Chat, "The latest messages of one conversation, with the calls of tools (id, limit)", nil, Transcript{}, 0, (*Handler).conversation},
		{"DELETE", people + "/conversation", principal.Chat, "Delete one conversation (id)", nil, Removed{}, 0, (*Handler).forgetConversation},
		{"POST", people + "/conversation/copy", principal.Chat, "Copy one conversation, also one that somebody shares to use it", CopyRequest{}, Copied{}, 201, (*Handler).copyConversation},
	}
}

// messageRoutes are the endpoints of messages and their answers.
func messageRoutes() []route {
	return []route{
		{"POST", "/api/v1/chat", principal.Chat, "Send a message and wait for the answer", Request{}, Response{}, 0, (*Handler).answer},
		{"POST", "/api/v1/chat/stream", principal.Chat, "Send a message and receive the answer as server-sent events", Request{}, StreamEvent{}, 0, (*Handler).stream},
		{"POST", "/api/v1/chat/callback", principal.Chat, "Send a message and receive the answer at progress_callback_url", Request{}, Accepted{}, 202, (*Handler).callback},
		{"GET", "/api/v1/chat/{message}", principal.Chat, "Wait for the answer to a message that was sent before", nil, Response{}, 0, (*Handler).result},
		{"GET", "/api/v1/chat/{message}/stream", principal.Chat, "Receive the answer to a message that was sent before as server-sent events, from the first", nil, StreamEvent{}, 0, (*Handler).reattach},
		{"GET", "/api/v1/chat/{message}/media/{media}", principal.Chat, "An image, a sound or a file of a message or of its answer", nil, []byte{}, 0, (*Handler).media},
		{"POST", "/api/v1/chat/{message}/stop", principal.Chat, "Stop an answer; what was said so far is kept and returned", nil, Response{}, 0, (*Handler).stop},
	}
}

// Routes returns the paths of this API and the scope that each needs.
func (d *Handler) Routes() (list []principal.Route) {
	for _, route := range routes() {
		served := principal.Route{Pattern: route.method + " " + route.path, Scope: route.scope, Refuse: refuseAs, Handler: d.guarded(d.handle(route))}
		if route.body == nil {
			served.Body = principal.NoBody
		}
		list = append(list, served)
	}
	return append(list,
		principal.Route{Pattern: "GET /api/v1/openapi.json", Scope: principal.Open, Refuse: refuseAs, Handler: d.guarded(http.HandlerFunc(d.openAPI))},
		principal.Route{Pattern: "/api/v1/", Scope: principal.Open, Body: principal.NoBody, Refuse: refuseAs, Handler: d.guarded(http.HandlerFunc(nothing))})
}

func nothing(w http.ResponseWriter, r *http.Request) {
	refuse(w, fault.New(fault.NotFound, "no endpoint %s %s", r.Method, r.URL.Path).
		WithHint("GET /api/v1/openapi.json lists the endpoints"))
}

// handle converts errors to responses. The request is authorized already.
func (d *Handler) handle(route route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route.scope == principal.Org && r.Method != http.MethodGet {
			d.options.Log.InfoContext(r.Context(), "admin_action", "event", "admin_action", "key", principal.Of(r.Context()).Name, "method", r.Method, "path", r.URL.Path)
		}
		if err := route.does(d, w, r); err != nil {
			refuse(w, err)
		}
	})
}

// guarded refuses cross-site requests of browsers and sets security headers of
// responses.
func (d *Handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.options.Browsers.Refusal(r); err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// Failure is the body of every error.
type Failure struct {
	Error      string `json:"error"`
	Code       string `json:"code"`
	Message    string `json:"message"`
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
	failure.TooLarge:     {http.StatusRequestEntityTooLarge, "RequestTooLargeError", "REQUEST_BODY_TOO_LARGE", 0},
	failure.Unauthorized: {http.StatusUnauthorized, "AuthenticationError", "AUTHENTICATION_ERROR", 0},
	failure.Forbidden:    {http.StatusForbidden, "AuthorizationError", "AUTHORIZATION_ERROR", 0},
	failure.NotFound:     {http.StatusNotFound, "NotFoundError", "NOT_FOUND", 0},
	failure.Conflict:     {http.StatusConflict, "ConflictError", "CONFLICT", 0},
	failure.Busy:         {http.StatusTooManyRequests, "QueueDepthError", "QUEUE_DEPTH_EXCEEDED", 5},
	failure.RateLimited:  {http.StatusTooManyRequests, "RateLimitError", "RATE_LIMIT_EXCEEDED", 10},
	failure.OverBudget:   {http.StatusTooManyRequests, "BudgetError", "BUDGET_EXCEEDED", 0},
	failure.ModelFailed:  {http.StatusBadGateway, "ClaudeAPIError", "CLAUDE_API_ERROR", 0},
	failure.ModelRefused: {http.StatusRequestEntityTooLarge, "ClaudeRequestTooLargeError", "CLAUDE_REQUEST_BODY_TOO_LARGE", 0},
	failure.TimedOut:     {http.StatusGatewayTimeout, "TimeoutError", "TIMEOUT_ERROR", 0},
	failure.Unavailable:  {http.StatusServiceUnavailable, "UnavailableError", "UNAVAILABLE", 5},
	failure.Moved:        {http.StatusServiceUnavailable, "MovedError", "MOVED", 2},
}

// ofTurn classifies an error of the agent. A model that cannot be reached is the model's
// failure here: a message that was not taken has failed before.
func ofTurn(err error) error {
	if fault.CodeOf(err) == fault.Unavailable {
		return failure.As(failure.ModelFailed, err)
	}
	return failure.OfTurn(err)
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
func (d *Handler) audit(r *http.Request, action string, p conversation.Person, id string) {
	who := principal.Of(r.Context())
	if d.options.Audit == nil || who.ID == principal.LocalID || who.User == p.User {
		return
	}
	subject := strings.TrimSpace(p.String() + " " + id[:min(len(id), maxAudited)])
	d.options.Audit(r.Context(), action, strings.ToValidUTF8(subject, ""), nil)
}

// rates counts messages by person and minute.
type rates struct {
	most  int
	clock clock.Clock

	mu     sync.Mutex
	minute time.Time
	counts map[conversation.Person]int
}

// take counts a message and reports whether it is within the limit.
func (r *rates) take(p conversation.Person) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now().Truncate(time.Minute); !now.Equal(r.minute) {
		r.minute, r.counts = now, map[conversation.Person]int{}
	}
	r.counts[p]++
	return r.counts[p] <= r.most
}
