// Package openapi offers the operations of services with an OpenAPI or Swagger document as
// tools. Documents are read lazily from their raw JSON, since those of large services take
// other readers seconds and hundreds of megabytes.
package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/description"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filewatch"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/yamltext"
)

// API is a service with a document. It implements api.API.
type API struct {
	env    api.Environment
	client *httpcall.Client
	source *source
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	service *service
	problem string // why the newest document is not used
}

var _ api.Opener = Open

// Open reads the document of a service and watches it for changes.
func Open(ctx context.Context, env api.Environment) (api.API, error) {
	source, err := newSource(ctx, env)
	if err != nil {
		return nil, err
	}
	var client *httpcall.Client
	loaded, err := load(env, source.reader(ctx))
	if err == nil {
		if env.Login != nil && loaded.tokenURL != "" {
			env.Login = env.Login.At(loaded.tokenURL)
		}
		client, err = httpcall.New(env, loaded.base)
	}
	if err != nil {
		source.abandon(ctx)
		return nil, err
	}
	a := &API{env: env, client: client, source: source, service: loaded}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	a.done.Go(func() { source.watch(watching, a.reload) })
	return a, nil
}

// reload reads the document again. A document that cannot be used, or that names another
// service, changes nothing: credentials are for the service that was configured.
func (a *API) reload(ctx context.Context) {
	fresh, err := load(a.env, a.source.reader(ctx))
	a.mu.Lock()
	switch {
	case err != nil:
		a.problem = "the changed document is not used: " + err.Error()
	case fresh.base != a.service.base:
		a.problem = "the changed document is not used: it names another server, " + fresh.base + "; set base_url, or add the upstream again"
	case fresh.tokenURL != a.service.tokenURL:
		a.problem = "the changed document is not used: it names another address for tokens, " + fresh.tokenURL + "; add the upstream again"
	default:
		a.service, a.problem = fresh, ""
	}
	problem := a.problem
	a.mu.Unlock()
	if problem != "" {
		a.env.Log.WarnContext(ctx, "API document is not used", "upstream", a.env.Name, "reason", problem)
	}
	a.env.Changed()
}

// List implements api.API.
func (a *API) List(context.Context) (api.Listing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return description.Listing(a.service.listing, a.problem), nil
}

// Call implements api.API.
func (a *API) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	a.mu.Lock()
	op, base := a.service.operations[call.Tool], a.service.base
	a.mu.Unlock()
	if op == nil {
		return nil, fault.New(fault.InvalidParams, "there is no tool %s", call.Tool)
	}
	if op.base != "" {
		base = op.base
	}
	builder := newBuilder(op, call.Arguments)
	request, err := builder.request(base)
	if err != nil {
		return nil, err
	}
	if err := builder.addBody(ctx, &request, a.env.Files); err != nil {
		return nil, err
	}
	a.client.Identify(&request)
	request.Progress = func(message string) { call.Progress(0, 0, message) }
	query := builder.pageQuery(request.URL)
	response, err := a.client.Do(ctx, request) //nolint:bodyclose // result closes it
	if err != nil {
		return nil, err
	}
	return answer{op, query, a.env, a.client, response}.result(ctx)
}

// Close implements api.API.
func (a *API) Close() {
	a.stop()
	a.done.Wait()
	a.client.Close()
}

// service is what is known of a service from its document: the tools, and how they are
// called. The document itself is not kept.
type service struct {
	listing    api.Listing
	base       string                // URL of the service
	tokenURL   string                // where client credentials get a token; "" if it is not said
	operations map[string]*operation // by the names of their tools
}

// load reads a document and those that it refers to.
func load(env api.Environment, read func(location string) ([]byte, error)) (*service, error) {
	docs := &documents{read: read}
	doc, err := docs.load(env.Settings.Source)
	if err != nil {
		return nil, err
	}
	r := &reader{docs: docs, root: node{doc, doc.raw}, fixedBase: env.Settings.BaseURL != "", variables: env.Settings.Variables}
	if r.swagger, err = isSwagger(doc.raw); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read %s", shown(env.Settings.Source)).
			WithHint("OpenAPI 3.0, 3.1 and 3.2 and Swagger 2.0 are supported")
	}
	s := &service{operations: map[string]*operation{}}
	if s.base, err = r.baseURL(env.Settings); err != nil {
		return nil, err
	}
	r.hideCredentials(env)
	s.tokenURL = r.tokenURL(s.base)
	list := r.operations(env.Settings)
	nameOperations(list, api.NameBudget(env.Name))
	schemas := newSchemas(docs)
	for _, op := range list {
		s.listing.Tools = append(s.listing.Tools, r.definition(op, schemas, s.base))
		s.operations[op.name] = op
		op.forget()
	}
	s.listing.LeftOut = r.leftOut
	s.listing.Title, s.listing.Version, s.listing.Instructions = r.about()
	return s, nil
}

// isSwagger reports whether a document is Swagger 2 and not OpenAPI 3.
func isSwagger(raw json.RawMessage) (bool, error) {
	if version, ok := rawjson.GetText(raw, "openapi"); ok && strings.HasPrefix(version, "3.") {
		return false, nil
	}
	if version, ok := rawjson.Get(raw, "swagger"); ok && strings.HasPrefix(scalar(version), "2") {
		return true, nil
	}
	return false, fault.New(fault.InvalidParams, "it is no OpenAPI document")
}

// about is what the document says about the service.
func (r *reader) about() (title, version, instructions string) {
	info, _ := rawjson.Get(r.root.raw, "info")
	title, _ = rawjson.GetText(info, "title")
	raw, _ := rawjson.Get(info, "version")
	text, _ := rawjson.GetText(info, "description")
	return title, scalar(raw), api.Shorten(strings.TrimSpace(text))
}

// forget lets go of the document, whose memory is needed no longer.
func (op *operation) forget() {
	op.raw, op.item, op.extra = node{}, node{}, nil
	for _, p := range op.params {
		p.schema, p.description = node{}, ""
	}
	if op.body != nil {
		op.body.schemas, op.body.description = nil, ""
	}
}

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

// maxDocument is the largest document, also after its conversion from YAML.
const maxDocument = 64 << 20

// documents are a document and those it refers to. They stay raw JSON: operations are
// read one by one, and schemas when an operation needs them.
type documents struct {
	read   func(location string) ([]byte, error)
	loaded map[string]*document
}

// document is one document.
type document struct {
	location string // file or URL
	raw      json.RawMessage
	old      bool // schemas are those of Swagger 2 and OpenAPI 3.0, and not of JSON Schema 2020-12

	objects map[string]map[string]json.RawMessage // members of objects by pointer, for references
}

// node is a place in a document.
type node struct {
	doc *document
	raw json.RawMessage
}

// load returns the document at a location, which is read once.
func (d *documents) load(location string) (*document, error) {
	if known := d.loaded[location]; known != nil {
		return known, nil
	}
	text, err := d.read(location)
	if err != nil {
		return nil, err
	}
	raw, err := decode(text)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read %s", shown(location)).
			WithHint("it must be an OpenAPI 3 or Swagger 2 document in JSON or YAML")
	}
	doc := &document{location: location, raw: raw, objects: map[string]map[string]json.RawMessage{}}
	version, _ := rawjson.GetText(raw, "openapi")
	doc.old = version == "" || strings.HasPrefix(version, "3.0")
	if d.loaded == nil {
		d.loaded = map[string]*document{}
	}
	d.loaded[location] = doc
	return doc, nil
}

// shown is a location without what may be a secret in it.
func shown(location string) string { return api.Settings{Source: location}.Target() }

// decode returns JSON or YAML as JSON without blanks.
func decode(text []byte) (json.RawMessage, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if rawjson.First(text) != '{' {
		return yamltext.Decode(text, maxDocument)
	}
	var compact bytes.Buffer
	compact.Grow(len(text))
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	return compact.Bytes(), nil
}

// at returns what a JSON pointer names.
func (doc *document) at(pointer string) (json.RawMessage, bool) {
	if pointer == "" {
		return doc.raw, true
	}
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return nil, false
	}
	parent, token := pointer[:i], pointer[i+1:]
	members := doc.objects[parent]
	if members == nil {
		raw, ok := doc.at(parent)
		if !ok {
			return nil, false
		}
		if !rawjson.IsObject(raw) {
			return rawjson.Descend(raw, token)
		}
		members = map[string]json.RawMessage{}
		for m := rawjson.Walk(raw); m.Next(); {
			members[string(m.Name())] = m.Value
		}
		doc.objects[parent] = members
	}
	found, ok := members[rawjson.UnescapeToken(token)]
	return found, ok
}

// maxReferences is how many references may lead to each other.
const maxReferences = 32

// follow returns what a node refers to, and the node itself if it is no reference.
func (d *documents) follow(n node) (node, error) {
	for range maxReferences {
		ref, ok := reference(n.raw)
		if !ok {
			return n, nil
		}
		next, _, err := d.find(n.doc, ref)
		if err != nil {
			return node{}, err
		}
		n = next
	}
	return node{}, fmt.Errorf("more than %d references lead to each other", maxReferences)
}

// reference is the text of $ref.
func reference(raw json.RawMessage) (string, bool) {
	if rawjson.Lacks(raw, "$ref") {
		return "", false
	}
	return rawjson.GetText(raw, "$ref")
}

// find returns what a reference in a document names, and a key that is the same for all
// references to it.
func (d *documents) find(from *document, ref string) (n node, key string, err error) {
	place, fragment, _ := strings.Cut(ref, "#")
	doc := from
	if place != "" {
		location, err := from.beside(place)
		if err != nil {
			return node{}, "", err
		}
		if doc, err = d.load(location); err != nil {
			return node{}, "", err
		}
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	raw, ok := doc.at(fragment)
	if !ok {
		return node{}, "", fmt.Errorf("%s is not in the document", ref)
	}
	return node{doc, raw}, doc.location + "#" + fragment, nil
}

// beside resolves a reference to another document: a file in the folder of a file or
// below it, or a URL on the host of a URL.
func (doc *document) beside(place string) (string, error) {
	if !api.IsURL(doc.location) {
		if api.IsURL(place) || !filepath.IsLocal(filepath.FromSlash(place)) {
			return "", fmt.Errorf("%s: a file may refer only to files in its folder", place)
		}
		return filepath.Join(filepath.Dir(doc.location), filepath.FromSlash(place)), nil
	}
	base, err := url.Parse(doc.location)
	if err != nil {
		return "", fmt.Errorf("its url is not valid")
	}
	to, err := base.Parse(place)
	if err != nil || to.Host != base.Host || to.Scheme != base.Scheme {
		return "", fmt.Errorf("%s: a document may refer only to documents of its host", place)
	}
	return to.String(), nil
}

// member is a member of a node, through references.
func (d *documents) member(n node, key string) (node, bool) {
	raw, ok := rawjson.Get(n.raw, key)
	if !ok {
		return node{}, false
	}
	found, err := d.follow(node{n.doc, raw})
	return found, err == nil
}
