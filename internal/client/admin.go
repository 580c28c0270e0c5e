package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// withScheme adds http:// to an address without a scheme.
func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// Request sends a request to the API of the server at address.
func Request(ctx context.Context, address string, key secret.Text, method, path string, body any) (json.RawMessage, error) {
	u, err := url.Parse(withScheme(address))
	if err != nil || !strings.HasPrefix(u.Scheme, "http") {
		return nil, fault.New(fault.InvalidParams, "%s is not the address of an HTTP server", address).WithHint("for example http://127.0.0.1:8081")
	}
	request, err := adminRequest(ctx, method, u.Scheme+"://"+u.Host+path, body)
	if err != nil {
		return nil, err
	}
	if !key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
			err = withURL.Err // the message names the address already
		}
		return nil, fault.Wrap(fault.Unavailable, err, "ask %s", address).WithHint(startHint)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 256<<20))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "ask %s", address)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && key.IsZero() {
		return nil, fault.New(fault.NeedsAuth, "ask %s: the server requires a key", address).WithHint(keyHint)
	}
	return adminResponse(response.StatusCode, raw)
}

func adminRequest(ctx context.Context, method, target string, body any) (*http.Request, error) {
	var reader io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// adminResponse returns the body of a successful response, or the error in it.
func adminResponse(status int, body []byte) (json.RawMessage, error) {
	if status == http.StatusOK {
		return body, nil
	}
	var problem struct{ Code, Message, Hint string }
	if json.Unmarshal(body, &problem) != nil || problem.Message == "" {
		return nil, fault.New(fault.Upstream, "the server responded with status %d", status).WithHint("check that it is a luanette of this version")
	}
	return nil, fault.New(fault.Code(problem.Code), "%s", problem.Message).WithHint("%s", problem.Hint)
}
