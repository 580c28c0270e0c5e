package openapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filewatch"
)

// source is where the document is: a file or a URL, and those that it refers to.
type source struct {
	env    api.Environment
	client *httpcall.Client // nil for files

	mu       sync.Mutex
	files    map[string]bool // that were read
	etag     string          // of the document at the URL
	modified string          // the same, of services without ETags
	watcher  *filewatch.Watcher
}

func newSource(ctx context.Context, env api.Environment) (*source, error) {
	s := &source{env: env, files: map[string]bool{}}
	if !api.IsURL(env.Settings.Source) {
		s.watcher = filewatch.New(ctx, env.Log) // before the first reading, so that no change is missed
		return s, nil
	}
	var err error
	s.client, err = httpcall.New(s.documentEnvironment(), env.Settings.Source)
	return s, err
}

// documentEnvironment is that of requests for the document. It gets the credentials only
// if it is at the configured service.
func (s *source) documentEnvironment() api.Environment {
	env := s.env
	document, err := url.Parse(env.Settings.Source)
	service, err2 := url.Parse(env.Settings.BaseURL)
	if err != nil || err2 != nil || document.Host != service.Host || document.Scheme != service.Scheme {
		env.Header = http.Header{"User-Agent": env.Header.Values("User-Agent")}
		env.Settings = api.Settings{}
		env.Login = nil
	}
	return env
}

// abandon ends a source that is not watched.
func (s *source) abandon(ctx context.Context) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	s.watch(ended, nil)
}

// reader returns a function that reads the documents.
func (s *source) reader(ctx context.Context) func(location string) ([]byte, error) {
	return func(location string) ([]byte, error) {
		if s.client != nil {
			return s.download(ctx, location)
		}
		s.noteFile(ctx, location)
		f, err := os.Open(location)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "read the API's document").WithHint("openapi is the path of a file, relative to the configuration file, or a URL")
		}
		defer f.Close()
		return readLimited(f)
	}
}

func readLimited(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, err, "read the API's document")
	case len(text) > maxDocument:
		return nil, fault.New(fault.Limit, "the API's document has more than %d bytes", maxDocument)
	}
	return text, nil
}

// download reads a document from its URL.
func (s *source) download(ctx context.Context, location string) ([]byte, error) {
	answer, err := s.get(ctx, location, http.Header{})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Unavailable, "read the API's document: %s answered %s", answer.Request.URL.Host, answer.Status).
			WithHint("openapi must be the URL of the document itself")
	}
	if location == s.env.Settings.Source {
		s.mu.Lock()
		s.etag, s.modified = answer.Header.Get("ETag"), answer.Header.Get("Last-Modified")
		s.mu.Unlock()
	}
	return readLimited(answer.Body)
}

func (s *source) get(ctx context.Context, location string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fault.New(fault.Config, "the URL of the API's document is not valid")
	}
	header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	return s.client.Do(ctx, httpcall.Request{Method: http.MethodGet, URL: u, Header: header, Repeatable: true})
}

// noteFile adds a file to those that are watched.
func (s *source) noteFile(ctx context.Context, file string) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return // it cannot be read either
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[absolute] = true
	if s.watcher != nil {
		s.watcher.AddFiles(ctx, s.files)
	}
}

// watch calls changed after the document has changed, until ctx ends.
func (s *source) watch(ctx context.Context, changed func(context.Context)) {
	switch {
	case s.client != nil:
		s.poll(ctx, changed)
		s.client.Close()
	case s.watcher != nil:
		s.watcher.Run(ctx, s.watcher.HasFile, changed)
	}
}

// poll asks for the document from time to time.
func (s *source) poll(ctx context.Context, changed func(context.Context)) {
	s.env.Settings.Poll(ctx, func(ctx context.Context) {
		if s.hasChanged(ctx) {
			changed(ctx)
		}
	})
}

// hasChanged asks whether the document is another one.
func (s *source) hasChanged(ctx context.Context) bool {
	s.mu.Lock()
	etag, modified := s.etag, s.modified
	s.mu.Unlock()
	header := http.Header{}
	if etag != "" {
		header.Set("If-None-Match", etag)
	} else if modified != "" {
		header.Set("If-Modified-Since", modified)
	}
	answer, err := s.get(ctx, s.env.Settings.Source, header)
	if err != nil {
		return false // the document that is known stays
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
