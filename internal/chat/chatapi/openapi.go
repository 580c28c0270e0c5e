package chatapi

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/principal"
)

// object is a part of the document.
type object = map[string]any

var pathParameter = lazyregexp.New(`\{(\w+)\}`)

// document is the OpenAPI document, made from the same table and types that handle requests.
func document(version string) object {
	book := schemas{}
	paths := object{}
	for _, route := range routes() {
		path, _ := paths[route.path].(object)
		if path == nil {
			path = object{}
			paths[route.path] = path
		}
		path[strings.ToLower(route.method)] = route.describe(book)
	}
	return object{
		"openapi":    "3.1.0",
		"info":       object{"title": "Luanette chat", "version": version, "description": "An agent behind two endpoints, one message of a person at a time."},
		"paths":      paths,
		"security":   []object{{"key": []string{}}},
		"components": object{"schemas": book, "securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}}},
	}
}

// describe describes one route.
func (r route) describe(book schemas) object {
	failure := object{"description": "what went wrong", "content": object{"application/json": object{"schema": book.of(reflect.TypeFor[Failure]())}}}
	kind := "application/json"
	if _, streams := r.response.(StreamEvent); streams {
		kind = "text/event-stream"
	}
	if _, binary := r.response.([]byte); binary {
		kind = "application/octet-stream"
	}
	status := strconv.Itoa(r.status)
	about := object{
		"summary":     r.summary,
		"operationId": strings.Trim(strings.NewReplacer("/api/v1/", "", "/", "_", "{", "", "}", "", "-", "_").Replace(r.path), "_") + "_" + strings.ToLower(r.method),
		"tags":        []string{map[principal.Scope]string{principal.Chat: "chat", principal.Org: "admin"}[r.scope]},
		"responses": object{
			status:    object{"description": "done", "content": object{kind: object{"schema": book.of(reflect.TypeOf(r.response))}}},
			"default": failure,
		},
	}
	var parameters []object
	for _, name := range pathParameter().FindAllStringSubmatch(r.path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	if parameters != nil {
		about["parameters"] = parameters
	}
	if r.body != nil {
		about["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": book.of(reflect.TypeOf(r.body))}}}
	}
	return about
}

// schemas are the schemas of named types, by name.
type schemas map[string]object

// of returns the schema of a type, or a reference to it.
func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "format": "binary"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := s.of(t.Elem())
		return object{"oneOf": []object{inner, {"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	default:
		return object{}
	}
}

func (s schemas) named(t reflect.Type) object {
	if _, known := s[t.Name()]; !known {
		s[t.Name()] = object{} // for recursive types
		properties, required := object{}, []string{}
		s.fields(t, properties, &required)
		s[t.Name()] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}

func (s schemas) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.fields(f.Type, properties, required)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		schema := s.of(f.Type)
		if text := f.Tag.Get("doc"); text != "" {
			if _, reference := schema["$ref"]; reference {
				schema = object{"allOf": []object{schema}}
			}
			schema["description"] = text
		}
		properties[name] = schema
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}
