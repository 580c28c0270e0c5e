package grpcapi_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/grpcapi"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/npmtest"
)

// shop opens the shop of testdata, which grpc-js serves, and asks it for its methods.
func shop(t *testing.T) *apitest.Service {
	t.Helper()
	return apitest.MustOpen(t, grpcapi.Open, api.Settings{Kind: api.GRPC, Source: npmtest.Serve(t, "testdata/shop.mjs", "testdata/shop.proto")}, nil)
}

// TestShop calls a server of another implementation, with messages that have every hard
// part.
func TestShop(t *testing.T) {
	t.Parallel()
	s := shop(t)
	tools, leftOut := s.Tools(t)
	if len(tools) != 5 {
		t.Errorf("the tools are %v", tools)
	}
	apitest.Has(t, leftOut, "shop.v1.Products.Upload: it takes a stream", "shop.v1.Products.Talk")
	for _, definition := range tools {
		compiles(t, definition)
	}
	apitest.Has(t, tools["Products_Find"], `"annotations":{"readOnlyHint":true`, `/shop.v1.Products/Find"`)
	apitest.Has(t, tools["Products_Save"], `"idempotentHint":true`, `"parent":{"$ref":"#/$defs/shop.v1.Product"}`)
	apitest.Has(t, tools["Products_Delete"], `"annotations":{"readOnlyHint":false}`)

	found := s.MustCall(t, "Products_Find", `{"id":"p1"}`)
	apitest.Has(t, found.Structured, `"id":"p1"`, `"stock":"9007199254740993"`, `"state":"SOLD_OUT"`, `"sizes":{"m":{"width":2,"unit":"INCH"}}`,
		`"added":"2023-11-14T22:13:20Z"`, `"delivery":"3.500s"`, `"extra":{"color":"red"}`, `"note":"new"`, `"picture":"cG5n"`,
		`"parts":[{"id":"part","stock":"0"`, `"makerName":"Ann"`)
	saved := s.MustCall(t, "Products_Save", `{"id":"x","stock":"9007199254740995","state":"AVAILABLE","sizes":{"s":{"unit":"MM"}},"added":"2026-01-02T03:04:05Z",`+
		`"delivery":"1.5s","extra":{"a":[1,null]},"note":"n","picture":"AQID","parent":{"id":"y"},"makerNumber":7,"maxCount":0}`)
	apitest.Has(t, saved.Structured, `"stock":"9007199254740995"`, `"added":"2026-01-02T03:04:05Z"`, `"delivery":"1.500s"`, `"extra":{"a":[1,null]}`,
		`"picture":"AQID"`, `"parent":{"id":"y"`, `"makerNumber":7`, `"maxCount":0`)
	if empty := s.MustCall(t, "Products_Delete", ``); empty.Structured != `{}` || empty.Failed {
		t.Errorf("an empty answer is %+v", empty)
	}
	if echo := s.MustCall(t, "Products_Echo", `{"value":"hi"}`); echo.Structured != `{"result":"hi"}` {
		t.Errorf("a value is %+v", echo)
	}
	if me := s.MustCall(t, "Products_Find", `{"id":"me"}`); !strings.Contains(me.Structured, `"id":"Bearer [secret]"`) {
		t.Errorf("the metadata is %+v", me)
	}
	missing := s.MustCall(t, "Products_Find", `{"id":"none"}`)
	if !missing.Failed || missing.Structured != `{"code":"NOT_FOUND","message":"no product none"}` {
		t.Errorf("an error is %+v", missing)
	}
	for arguments, want := range map[string]string{
		`{"name":1}`: `unknown field "name"`, `{"id":1}`: "invalid value for string",
	} {
		if _, err := s.Call(t.Context(), "Products_Find", arguments); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", arguments, err)
		} else {
			apitest.Has(t, err.Error(), want)
		}
	}
	if _, err := s.Call(t.Context(), "Products_Upload", ``); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestStreams collects the messages of streams.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := shop(t)
	all := s.MustCall(t, "Products_Watch", `{"count":3}`)
	if all.Failed || strings.Count(all.Structured, `"id"`) != 3 || !strings.HasSuffix(all.Structured, `"complete":true}`) {
		t.Errorf("a stream is %+v", all)
	}
	if s.Progress() != "message 1\nmessage 2\nmessage 3" {
		t.Errorf("progress %q", s.Progress())
	}
	some := s.MustCall(t, "Products_Watch", `{"count":3,"forever":true,"max_messages":2}`)
	apitest.Has(t, some.Structured, `"complete":false,"reason":"there are more than 2 messages"`)
	open := s.MustCall(t, "Products_Watch", `{"count":1,"forever":true,"max_seconds":0.5}`)
	apitest.Has(t, open.Structured, `"complete":false,"reason":"the stream was still open after 500ms"`)
	broken := s.MustCall(t, "Products_Watch", `{"count":2,"fail":true}`)
	if !broken.Failed {
		t.Errorf("a stream that ends with an error is %+v", broken)
	}
	apitest.Has(t, broken.Structured, `"code":"DATA_LOSS","message":"the rest is lost","items":[{"id":"p1"`, `"complete":false`)
}
