package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Limits of a response.
const (
	mostResponse   = 64 << 20
	mostDimensions = 16 << 10
	mostErrorText  = 300
)

type embedRequest struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type embedResponse struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// embed asks the endpoint for the vectors of texts.
func (m *Model) embed(ctx context.Context, texts []string) ([]Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	body, err := json.Marshal(embedRequest{m.options.Model, texts, "float"})
	if err != nil {
		return nil, err
	}
	raw, err := m.post(ctx, body)
	if err != nil {
		return nil, err
	}
	return vectorsOf(raw, len(texts))
}

func (m *Model) post(ctx context.Context, body []byte) (raw []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.options.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "search.embeddings.url")
	}
	request.Header.Set("Content-Type", "application/json")
	if !m.options.Key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+m.options.Key.Reveal())
	}
	response, err := m.options.Client.Do(request)
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "embed texts")
	}
	defer func() { _ = response.Body.Close() }() // it was read
	raw, err = io.ReadAll(io.LimitReader(response.Body, mostResponse))
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "embed texts")
	}
	if response.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Upstream, "embed texts: status %d: %s", response.StatusCode, raw[:min(len(raw), mostErrorText)])
	}
	return raw, nil
}

// vectorsOf reads a response with so many vectors.
func vectorsOf(raw []byte, count int) ([]Vector, error) {
	var r embedResponse
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read embeddings")
	}
	vectors := make([]Vector, count)
	for _, d := range r.Data {
		if d.Index < 0 || d.Index >= count || len(d.Embedding) > mostDimensions {
			return nil, fault.New(fault.Upstream, "read embeddings: unexpected index %d with %d dimensions", d.Index, len(d.Embedding))
		}
		vectors[d.Index] = quantize(d.Embedding)
	}
	for i, v := range vectors {
		if v == nil {
			return nil, fault.New(fault.Upstream, "read embeddings: text %d of %d has none", i+1, count)
		}
	}
	return vectors, nil
}
