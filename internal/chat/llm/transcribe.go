package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// Transcriber turns speech into text, at an endpoint with OpenAI's transcription API. It is
// safe for concurrent use.
type Transcriber struct {
	client   *http.Client
	endpoint string
	model    string
	key      secret.Text
}

// TranscriberOptions configure a Transcriber.
type TranscriberOptions struct {
	BaseURL   string            // as Options.BaseURL
	Model     string            // empty means DefaultTranscriber
	Key       secret.Text       // may be empty
	Transport http.RoundTripper // nil means the default
}

const (
	// DefaultTranscriber is the model that transcribes if none is named.
	DefaultTranscriber = "whisper-1"
	transcribeTime     = 2 * time.Minute
	maxTranscript      = 1 << 20 // bytes
)

// OpenTranscriber makes a Transcriber. It makes no request.
func OpenTranscriber(o TranscriberOptions) (*Transcriber, error) {
	if !isHTTP(o.BaseURL) {
		return nil, fault.New(fault.Config, "chat.transcription_url: %q is not an http(s) address", o.BaseURL).WithHint("for example http://127.0.0.1:8000/v1")
	}
	chat := newOpenAI(Options{BaseURL: o.BaseURL}, nil)
	return &Transcriber{
		client:   &http.Client{Transport: o.Transport, CheckRedirect: stay},
		endpoint: strings.TrimSuffix(chat.endpoint, "/chat/completions") + "/audio/transcriptions",
		model:    cmp.Or(o.Model, DefaultTranscriber), key: o.Key,
	}, nil
}

// Transcribe returns what is said in a sound.
func (t *Transcriber) Transcribe(ctx context.Context, m Media) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transcribeTime)
	defer cancel()
	body, kind, err := t.form(m)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "write request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, body)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "write request")
	}
	req.Header.Set("Content-Type", kind)
	if !t.key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+t.key.Reveal())
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return "", t.fault(ctx, unwrapURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", t.fault(ctx, refusal(resp))
	}
	var answer struct{ Text string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTranscript)).Decode(&answer); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read transcript")
	}
	return strings.TrimSpace(answer.Text), nil
}

// Func returns Transcribe, or nil if there is no Transcriber.
func (t *Transcriber) Func() func(context.Context, Media) (string, error) {
	if t == nil {
		return nil
	}
	return t.Transcribe
}

func (t *Transcriber) fault(ctx context.Context, err error) error {
	return failureOf(ctx, err).fault(About{Provider: "openai", Model: t.model}, 1)
}

// form writes the request's body.
func (t *Transcriber) form(m Media) (body *bytes.Buffer, kind string, err error) {
	body = &bytes.Buffer{}
	form := multipart.NewWriter(body)
	file, err := form.CreateFormFile("file", cmp.Or(m.Name, "audio."+path.Base(m.MIME))) // the endpoint reads the format from the name
	if err != nil {
		return nil, "", err
	}
	if _, err := file.Write(m.Data); err != nil {
		return nil, "", err
	}
	for name, value := range map[string]string{"model": t.model, "response_format": "json"} {
		if err := form.WriteField(name, value); err != nil {
			return nil, "", err
		}
	}
	return body, form.FormDataContentType(), form.Close()
}
