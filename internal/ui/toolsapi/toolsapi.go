// Package toolsapi serves tools to programs that do not speak MCP: POST /tools/NAMESPACE/NAME
// calls one, and GET /openapi.json describes all that the caller may call. Calls take the
// same way as those of MCP clients.
package toolsapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// maxArguments is the largest body of a call.
const maxArguments = 16 << 20

// Options configure a server. All but Tools are optional.
type Options struct {
	Tools   tool.Source
	Version string // of the program
	// KeyRequired reports whether callers need a key.
	KeyRequired func(context.Context) (bool, error)
	// Caller names the caller as the other endpoints do; "" is the local owner.
	Caller func(*http.Request) string
}

// Server serves the tools.
type Server struct {
	options Options

	mu       sync.Mutex
	underWay int           // calls
	settled  chan struct{} // closed when none is left; nil before Drain
}

// New returns a server.
func New(o Options) *Server {
	if o.KeyRequired == nil {
		o.KeyRequired = func(context.Context) (bool, error) { return false, nil }
	}
	if o.Caller == nil {
		o.Caller = func(*http.Request) string { return "" }
	}
	return &Server{options: o}
}

// Routes are the server's paths and the scope that each requires. Our own tools and
// published scripts have no namespace.
func (s *Server) Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.MCP, Write: serve, MaxBody: maxArguments, Refuse: refuse, Bearer: true}
	}
	return []principal.Route{
		route("GET /openapi.json", s.document),
		route("GET /approvals/{id}", s.approval),
		route("POST /tools/{name}", s.call).Reads("the arguments of the tool"),
		route("POST /tools/{space}/{name}", s.call).Reads("the arguments of the tool"),
	}
}

// call calls a tool and answers its result as a JSON value.
func (s *Server) call(w http.ResponseWriter, r *http.Request) error {
	args, err := readArguments(r)
	if err != nil {
		return err
	}
	view, err := s.use(r, tool.Ref{Space: r.PathValue("space"), Name: r.PathValue("name")}, args)
	if err != nil {
		return err
	}
	id, waiting := view.PendingApproval()
	write(w, view, id, waiting)
	return nil
}

// write answers a result as a JSON value. While it waits for an approval, Location is where
// to ask for it.
func write(w http.ResponseWriter, view tool.View, approval string, waiting bool) {
	w.Header().Set("Content-Type", "application/json")
	if waiting {
		w.Header().Set("Location", "/approvals/"+url.PathEscape(approval))
		w.WriteHeader(http.StatusAccepted)
	}
	_, _ = w.Write(append(view.Value(), '\n')) // the client may have disconnected
}

// approval answers what a call that waited has come to: the approval with the outcome.
func (s *Server) approval(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	args, err := tool.Encode(map[string]string{"approval_id": id})
	if err != nil {
		return err
	}
	view, err := s.use(r, tool.Ref{Name: "approval_status"}, args)
	if err != nil {
		return err
	}
	write(w, view, id, isUndone(view.Structured))
	return nil
}

// isUndone reports whether a call waits for its approval, or is being made.
func isUndone(approval json.RawMessage) bool {
	status, _ := rawjson.GetText(approval, "status")
	_, done := rawjson.Get(approval, "outcome")
	_, isJob := rawjson.Get(approval, "job_id") // the job has the outcome
	return status == "pending" || status != "withdrawn" && !done && !isJob
}

// Drain refuses further calls, and waits for those under way until ctx ends. It returns how many
// were left.
func (s *Server) Drain(ctx context.Context) (left int) {
	s.mu.Lock()
	if s.settled == nil {
		s.settled = make(chan struct{})
		if s.underWay == 0 {
			close(s.settled)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.settled:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underWay
}

// begin reports whether a call may be made. If so, it ends with end.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled != nil {
		return false
	}
	s.underWay++
	return true
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay--; s.underWay == 0 && s.settled != nil {
		close(s.settled)
	}
}

// use calls a tool.
func (s *Server) use(r *http.Request, ref tool.Ref, args json.RawMessage) (tool.View, error) {
	if !s.begin() {
		return tool.View{}, fault.New(fault.Unavailable, "server is shutting down")
	}
	defer s.end()
	who := s.options.Caller(r)
	caller := &tool.Caller{User: who}
	if who != "" {
		caller.ID = "user:" + who
	}
	result, err := s.options.Tools.Call(r.Context(), tool.Call{Ref: ref, Args: args, Caller: caller})
	if err != nil {
		return tool.View{}, err
	}
	view, err := result.View()
	if err == nil && view.IsError {
		err = failureOf(view)
	}
	return view, err
}

// readArguments reads the arguments: a JSON object, or nothing.
func readArguments(r *http.Request) (json.RawMessage, error) {
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fault.Wrap(fault.Limit, large, "the arguments are larger than %d bytes", large.Limit).WithHint("store large contents with POST /cas, and pass their hash")
	case err != nil:
		return nil, fault.New(fault.InvalidParams, "the body ended early")
	case len(body) == 0:
		return json.RawMessage("{}"), nil
	}
	if problem := rawjson.Valid(body); problem != nil {
		return nil, fault.Wrap(fault.InvalidParams, problem, "the body is not JSON")
	}
	if !rawjson.IsObject(body) {
		return nil, fault.New(fault.InvalidParams, "the body is not a JSON object").WithHint("send the tool's arguments as an object; GET /openapi.json describes them")
	}
	return body, nil
}

// failureOf is the error of a tool that ran and failed.
func failureOf(view tool.View) error {
	if raw, ok := rawjson.Get(view.Meta, tool.ErrorKey); ok {
		var f struct {
			Code          fault.Code
			Message, Hint string
			Details       json.RawMessage
		}
		if json.Unmarshal(raw, &f) == nil && f.Code != "" {
			return &fault.Error{Code: f.Code, Msg: f.Message, Hint: f.Hint, Details: f.Details}
		}
	}
	return fault.New(fault.Upstream, "%s", view.Text())
}

// document answers the OpenAPI document of the tools that the caller may call.
func (s *Server) document(w http.ResponseWriter, r *http.Request) error {
	tools, err := s.options.Tools.Tools(r.Context())
	if err != nil {
		return err
	}
	required, err := s.options.KeyRequired(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store") // it is the caller's own
	httpjson.JSON(w, http.StatusOK, newDocument(selected(tools, r.URL.Query()["namespace"]), s.options.Version, required))
	return nil
}

// Problem is an error as application/problem+json (RFC 9457).
type Problem struct {
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail"`
	Code    fault.Code      `json:"code"` // docs/errors has a page on each
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// refuse answers with an error. Credentials that an upstream lacks are not the caller's, so they are no
// 401, unlike those of callers, which are asked for with a challenge.
func refuse(w http.ResponseWriter, _ *http.Request, status int, err error) {
	f := fault.From(err)
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		status = http.StatusFailedDependency
	}
	if after, ok := principal.RetryAfter(err); ok {
		w.Header().Set("Retry-After", principal.RetryHeader(after))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{ // the client may have disconnected
		Type: "urn:luanette:error:" + string(f.Code), Title: http.StatusText(status), Status: status,
		Detail: f.Error(), Code: f.Code, Hint: fault.HintOf(f), Details: f.Details,
	})
}
