package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/store/artifact"
)

// Resource is an MCP resource, or a resource template whose URI ends in one
// {variable}.
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string // "" if it depends on the variable
	// TypeOf returns the MIME type if it depends on the variable; otherwise nil.
	TypeOf func(ctx context.Context, variable string) string
	// Read returns the text; variable is the decoded value of a template's variable.
	// It returns fault.NotFound if there is no such resource.
	Read func(ctx context.Context, variable string) (text string, err error)
}

// template returns a template's URI up to its variable.
func (r Resource) template() (prefix string, ok bool) {
	prefix, _, ok = strings.Cut(r.URI, "{")
	return prefix, ok
}

// Resources serves resources to the MCP server, in MCP's format.
type Resources struct{ all []Resource }

// NewResources joins the resources of several families.
func NewResources(families ...[]Resource) *Resources {
	r := &Resources{}
	for _, f := range families {
		r.all = append(r.all, f...)
	}
	return r
}

// listing is a resource or a template in MCP's format.
type listing struct {
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// ListResources lists the resources.
func (r *Resources) ListResources(context.Context) ([]json.RawMessage, error) { return r.list(false) }

// ListTemplates lists the templates.
func (r *Resources) ListTemplates(context.Context) ([]json.RawMessage, error) { return r.list(true) }

func (r *Resources) list(templates bool) ([]json.RawMessage, error) {
	found := []json.RawMessage{}
	for _, one := range r.all {
		l := listing{Name: one.Name, Title: one.Title, Description: one.Description, MIMEType: one.MIMEType}
		if _, isTemplate := one.template(); isTemplate != templates {
			continue
		} else if isTemplate {
			l.Template = one.URI
		} else {
			l.URI = one.URI
		}
		raw, err := json.Marshal(l)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "list resources")
		}
		found = append(found, raw)
	}
	return found, nil
}

// ReadResource returns MCP's ReadResourceResult.
func (r *Resources) ReadResource(ctx context.Context, uri string, _ *tool.Caller) (json.RawMessage, error) {
	one, variable, err := r.find(uri)
	if err != nil {
		return nil, err
	}
	text, err := one.Read(ctx, variable)
	if err != nil {
		return nil, err
	}
	mime := one.MIMEType
	if one.TypeOf != nil {
		mime = one.TypeOf(ctx, variable)
	}
	return json.Marshal(map[string]any{
		"contents": []map[string]string{{"uri": uri, "mimeType": mime, "text": text}},
	})
}

func (r *Resources) find(uri string) (Resource, string, error) {
	for _, one := range r.all {
		if one.URI == uri {
			return one, "", nil
		}
	}
	for _, one := range r.all {
		prefix, ok := one.template()
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(uri, prefix); ok && rest != "" && !strings.Contains(rest, "/") {
			if variable, err := url.PathUnescape(rest); err == nil {
				return one, variable, nil
			}
		}
	}
	known := make([]string, len(r.all))
	for i, one := range r.all {
		known[i] = one.URI
	}
	return Resource{}, "", fault.New(fault.NotFound, "no resource %q", uri).
		WithHint("available: %s", strings.Join(known, ", "))
}

// AsJSON is the text of a resource that shows v, if err is nil.
func AsJSON(v any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode resource: %w", err)
	}
	return string(raw), nil
}

// Music is the readable part of the music backend.
type Music interface {
	Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error)
	Artifacts(ctx context.Context, q artifact.Query) (hootenanny.ArtifactList, error)
	Garden(ctx context.Context, project string) (hootenanny.GardenView, error)
}

// MusicResources makes the resources for artifacts and the transport.
func MusicResources(m Music) []Resource {
	const mime = "application/json"
	list := func(q artifact.Query) func(context.Context, string) (string, error) {
		return func(ctx context.Context, _ string) (string, error) {
			return AsJSON(m.Artifacts(ctx, q))
		}
	}
	timeline := func(ctx context.Context, project string) (string, error) {
		return AsJSON(m.Garden(ctx, project))
	}
	return []Resource{
		{URI: "hoot://artifacts/recent", Name: "recent-artifacts", Title: "Recent artifacts", MIMEType: mime,
			Description: "The newest 50 artifacts with their tags and where their contents are", Read: list(artifact.Query{Limit: 50})},
		{URI: "hoot://soundfonts", Name: "soundfonts", Title: "SoundFonts", MIMEType: mime,
			Description: "The artifacts that are SoundFonts", Read: list(artifact.Query{Tags: []string{"type:soundfont"}, Limit: 200})},
		{URI: "hoot://garden", Name: "garden", Title: "The garden", MIMEType: mime, Description: "The transport and the timeline", Read: timeline},
		{URI: "hoot://garden/{project}", Name: "garden-project", Title: "A project", MIMEType: mime, Description: "The transport and the timeline of one project", Read: timeline},
		{URI: "hoot://artifact/{id}", Name: "artifact", Title: "An artifact", MIMEType: mime, Description: "All metadata of one artifact",
			Read: func(ctx context.Context, id string) (string, error) {
				return AsJSON(m.Artifact(ctx, id))
			}},
	}
}
