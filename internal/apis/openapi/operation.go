package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// operation is one operation of a document, with what is needed to call it.
type operation struct {
	name       string // of its tool
	id         string // operationId
	method     string
	path       string
	base       string // URL that the path is added to; empty: that of the document
	tags       []string
	deprecated bool
	params     []*parameter
	body       *body // nil: it has none

	raw  node
	item node // the path item

	pageParams []pageParameter
	pageNames  []string // those that may carry the next page
	pagesBody  bool     // they are members of the body, not of the query
	extra      []argument
}

// methods are the fields of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// reader reads a document.
type reader struct {
	docs    *documents
	root    node
	swagger bool // it is Swagger 2
	leftOut []string

	hidden    map[string]bool   // parameters that callers do not give, as "in name"
	fixedBase bool              // all operations are at the configured URL
	variables map[string]string // of servers
}

// operations lists the operations of the document that are selected, in its order.
func (r *reader) operations(settings api.Settings) (list []*operation) {
	paths, _ := r.docs.member(r.root, "paths")
	for m := rawjson.Walk(paths.raw); m.Next(); {
		path := string(m.Name())
		item, err := r.docs.follow(node{paths.doc, m.Value})
		if err != nil {
			r.leaveOut(path, err)
			continue
		}
		for _, op := range r.ofItem(item) {
			op.path = path
			if !settings.Selects(op.selectable()) {
				continue
			}
			if err := r.complete(op); err != nil {
				r.leaveOut(op.method+" "+path, err)
				continue
			}
			list = append(list, op)
		}
	}
	return list
}

// selectable is what selectors see of the operation.
func (op *operation) selectable() api.Operation {
	return api.Operation{Names: []string{op.id, plainName(op)}, Method: op.method, Path: op.path, Tags: op.tags}
}

func (r *reader) leaveOut(what string, err error) {
	r.leftOut = append(r.leftOut, fmt.Sprintf("%s: %v", what, err))
}

// ofItem returns the operations of a path item with what selects them.
func (r *reader) ofItem(item node) (list []*operation) {
	add := func(method string, raw json.RawMessage) {
		if !rawjson.IsObject(raw) {
			return
		}
		op := &operation{method: strings.ToUpper(method), raw: node{item.doc, raw}, item: item}
		op.id, _ = rawjson.GetText(raw, "operationId")
		op.deprecated = rawjson.GetBool(raw, "deprecated")
		tags, _ := rawjson.Get(raw, "tags")
		items, _ := rawjson.Items(tags)
		for _, tag := range items {
			text, _ := rawjson.Text(tag)
			op.tags = append(op.tags, text)
		}
		list = append(list, op)
	}
	for m := rawjson.Walk(item.raw); m.Next(); {
		switch name := string(m.Name()); {
		case slices.Contains(methods, name):
			add(name, m.Value)
		case name == "additionalOperations":
			rawjson.Each(m.Value, func(method string, raw json.RawMessage) bool { add(method, raw); return true })
		}
	}
	return list
}

// complete reads what a call needs.
func (r *reader) complete(op *operation) error {
	all, err := r.parameters(op)
	if err != nil {
		return err
	}
	if r.swagger {
		err = r.swaggerBody(op, all)
	} else {
		op.body, err = r.requestBody(op)
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		if !r.isHidden(p) {
			op.params = append(op.params, p)
		}
	}
	op.base = r.serverOf(op)
	nameArguments(op)
	op.offerContentTypes()
	op.findPaging(r)
	return nil
}

// isHidden reports whether callers do not give the parameter: credentials, and headers
// that we set.
func (r *reader) isHidden(p *parameter) bool {
	if p.in == "body" || p.in == "formData" {
		return true
	}
	name := strings.ToLower(p.name)
	if p.in == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, name) {
		return true
	}
	return r.hidden[p.in+" "+name]
}

// description is the summary, the description and what callers must know besides.
func (op *operation) description() string {
	summary, _ := rawjson.GetText(op.raw.raw, "summary")
	text, _ := rawjson.GetText(op.raw.raw, "description")
	summary, text = strings.TrimSpace(summary), strings.TrimSpace(text)
	switch {
	case text == "" || text == summary:
		text = summary
	case summary != "" && !strings.HasPrefix(text, summary):
		text = strings.TrimSuffix(summary, ".") + ".\n\n" + text
	}
	if text == "" {
		text = op.method + " " + op.path
	}
	if op.deprecated {
		text = "Deprecated. " + text
	}
	return api.Shorten(text)
}
