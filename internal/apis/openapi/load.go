package openapi

import (
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

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
