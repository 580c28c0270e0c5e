package api_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
)

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"orders.example:50051": "https://orders.example:50051", "localhost:50051": "http://localhost:50051", "127.0.0.1:1": "http://127.0.0.1:1",
		"[::1]:1": "http://[::1]:1", "http://orders.example:50051": "http://orders.example:50051", "https://localhost:1/": "https://localhost:1",
		"https://orders.example": "https://orders.example:443", "http://orders.example": "http://orders.example:80",
		"orders.example": "", ":50051": "", "https://u:p@orders.example:1": "", "https://orders.example/path": "", "ftp://orders.example:1": "",
	} {
		u, err := api.Settings{Source: source}.Endpoint()
		switch {
		case err != nil && want != "":
			t.Errorf("%s: %v", source, err)
		case err == nil && u.String() != want:
			t.Errorf("%s is %s, want %s", source, u, want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]api.Settings{
		"":                                       {Kind: api.GRPC, Source: "orders.example:1", SchemaFile: "orders.binpb", Include: []string{"tag:Orders"}},
		"graphql is not an http or https url":    {Kind: api.GraphQL, Source: "shop.example/graphql"},
		"schema_file is for graphql and grpc":    {Kind: api.OpenAPI, Source: "a.yaml", SchemaFile: "b"},
		"base_url and variables are for openapi": {Kind: api.GraphQL, Source: "https://a.example", BaseURL: "https://b.example"},
		"query, cookies, hosts and idempotency":  {Kind: api.GRPC, Source: "a.example:1", Query: map[string]string{"a": "b"}},
		"grpc is not HOST:PORT":                  {Kind: api.GRPC, Source: "a.example"},
		`"orders" selects no operations`:         {Kind: api.GraphQL, Source: "https://a.example", Exclude: []string{"orders"}},
		"cert_file and key_file belong together": {Kind: api.GRPC, Source: "a.example:1", CertFile: "c"},
		"password without a user":                {Kind: api.GraphQL, Source: "https://a.example", Password: "p"},
		"graphql names no description":           {Kind: api.GraphQL},
	} {
		err := s.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
