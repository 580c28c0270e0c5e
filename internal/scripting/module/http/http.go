// Package http is the http module of scripts: requests to the hosts that the
// configuration allows. The client enforces that.
package http

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed http.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global http, and http_request.
func Module() host.Module {
	return host.Module{Name: "http", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "request", Effect: request, Check: checkRequest, Classify: classify, Waits: true},
	}}
}

// request(method, url, headers, body, milliseconds) returns status, headers, body and
// the final URL.
func request(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if w.HTTP == nil {
		return nil, noNetwork()
	}
	milliseconds, err := args.OptInt(5, 0)
	if err != nil {
		return nil, err
	}
	if milliseconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(milliseconds)*time.Millisecond, errTooSlow)
		defer cancel()
	}
	question, err := newRequest(ctx, args)
	if err != nil {
		return nil, err
	}
	answer, err := w.HTTP.Do(question)
	if err != nil {
		return nil, noAnswer(ctx, question, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, noAnswer(ctx, question, err)
	}
	headers, err := host.Table(flat(answer.Header))
	return []host.Value{int64(answer.StatusCode), headers, string(body), answer.Request.URL.String()}, err
}

// checkRequest refuses what request would refuse before it sends anything.
func checkRequest(ctx context.Context, w *host.Services, args host.Args) error {
	if w.HTTP == nil {
		return noNetwork()
	}
	question, err := newRequest(ctx, args)
	if err != nil {
		return err
	}
	if g, ok := w.HTTP.Transport.(*guard); ok {
		return g.rules.check(question.URL)
	}
	return nil
}

func noNetwork() error {
	return fault.New(fault.Denied, "http: this run may not use the network").
		WithHint("allow hosts in the configuration with scripts.http_hosts")
}

func newRequest(ctx context.Context, args host.Args) (*http.Request, error) {
	method, err := args.String(1)
	if err != nil {
		return nil, err
	}
	url, err := args.String(2)
	if err != nil {
		return nil, err
	}
	var headers map[string]string
	if err := args.Decode(3, &headers); err != nil {
		return nil, err
	}
	body, err := args.OptString(4, "")
	if err != nil {
		return nil, err
	}
	question, err := http.NewRequestWithContext(ctx, strings.ToUpper(method), url, strings.NewReader(body))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "http: %v", err)
	}
	question.Header.Set("User-Agent", "luanette")
	for name, value := range headers {
		if strings.EqualFold(name, "host") {
			question.Host = value
		}
		question.Header.Set(name, value)
	}
	return question, nil
}

// errTooSlow is the cause of a request that exceeded the script's timeout.
var errTooSlow = errors.New("no answer in time")

// noAnswer converts the error of a request: our own refusals stay as they are,
// everything else is a failure of the other side.
func noAnswer(ctx context.Context, question *http.Request, err error) error {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return refused
	}
	doing := "http: " + question.Method + " " + question.URL.Redacted()
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return fault.Wrap(fault.Unavailable, errTooSlow, "%s", doing)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the URL, which doing contains
	}
	return fault.Wrap(fault.Unavailable, err, "%s", doing)
}

// flat joins the values of every header under its lower-case name.
func flat(headers http.Header) map[string]string {
	flat := make(map[string]string, len(headers))
	for name, values := range headers {
		flat[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return flat
}

// classify decides by what HTTP methods promise.
func classify(_ context.Context, w *host.Services, args host.Args) host.Kind {
	method, _ := args.At(1).(string)
	switch strings.ToUpper(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if w != nil && w.GetWrites {
			return host.Idempotent
		}
		return host.Read
	case http.MethodPut, http.MethodDelete:
		return host.Idempotent
	default:
		return host.Write
	}
}
