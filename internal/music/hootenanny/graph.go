package hootenanny

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) graphTools() []toolset.Tool {
	return []toolset.Tool{
		define("graph_context", reads(), h.graphContext),
		define("graph_query", reads(), h.graphQuery),
	}
}

type graphContextIn struct {
	Tag         string `json:"tag,omitempty" jsonschema:"only those with this tag, such as type:midi" max:"128"`
	Creator     string `json:"creator,omitempty" jsonschema:"only those of this creator" max:"256"`
	Vibe        string `json:"vibe_search,omitempty" jsonschema:"words to search for in names, descriptions, tags and annotations" max:"512"`
	Limit       int    `json:"limit,omitempty" jsonschema:"maximum number; default 20" min:"1" max:"200"`
	Metadata    bool   `json:"include_metadata,omitempty" jsonschema:"show metadata too"`
	Annotations *bool  `json:"include_annotations,omitempty" jsonschema:"show annotations; default true"`
}

// GraphContext is the matching artifacts and a summary.
type GraphContext struct {
	Artifacts []ArtifactView `json:"artifacts"`
	Summary   GraphSummary   `json:"summary"`
}

// GraphSummary counts the matching artifacts.
type GraphSummary struct {
	Total  int            `json:"total" jsonschema:"number of all matches, counted up to 1000"`
	ByType map[string]int `json:"by_type" jsonschema:"counts of the artifacts shown"`
}

// Text has one line per item.
func (g GraphContext) Text() string {
	lines := []string{fmt.Sprintf("%d artifacts match (showing %d)", g.Summary.Total, len(g.Artifacts))}
	for _, v := range g.Artifacts {
		line := v.Text()
		for _, n := range v.Annotations {
			line += "\n    " + strings.TrimSpace(n.Vibe+" "+n.Message)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) graphContext(ctx context.Context, _ tool.Call, in graphContextIn) (GraphContext, error) {
	page, err := h.files.Search(ctx, artifact.Query{Tags: some(in.Tag), Creator: in.Creator, Vibe: in.Vibe, Limit: cmp.Or(in.Limit, 20)})
	if err != nil {
		return GraphContext{}, err
	}
	list, err := h.listed(ctx, page)
	views := list.Artifacts
	g := GraphContext{Artifacts: views, Summary: GraphSummary{Total: page.Total, ByType: map[string]int{}}}
	for i := range views {
		v := &views[i]
		g.Summary.ByType[typeOf(v)]++
		if !in.Metadata {
			v.Metadata = nil
		}
		if in.Annotations != nil && !*in.Annotations {
			v.Annotations = nil
		}
	}
	return g, err
}

// typeOf is an artifact's type by its tags, or else by its content.
func typeOf(v *ArtifactView) string {
	for _, tag := range v.Tags {
		if kind, ok := strings.CutPrefix(tag, "type:"); ok {
			return kind
		}
	}
	return kindOf(v.MIMEType)
}

type graphQueryIn struct {
	Query     string         `json:"query" jsonschema:"a filter such as: tag = type:midi and (vibe ~ calm or annotation ~ \"slow\") and not has(parent); or an artifact's id" min:"1" max:"4096"`
	Variables toolset.Object `json:"variables,omitempty" jsonschema:"values for $names in the query"`
	Limit     int            `json:"limit,omitempty" jsonschema:"maximum number; default 100" min:"1" max:"1000"`
}

// QueryResult is the artifacts that match a query.
type QueryResult struct {
	Results  []ArtifactView `json:"results"`
	Count    int            `json:"count"`
	Examined int            `json:"examined" jsonschema:"number of artifacts tested"`
	Complete bool           `json:"complete" jsonschema:"whether these are all matches"`
}

// Text has one line per item.
func (r QueryResult) Text() string {
	lines := []string{fmt.Sprintf("%d artifacts", r.Count)}
	for _, v := range r.Results {
		lines = append(lines, v.Text())
	}
	return strings.Join(lines, "\n")
}

// maxExamined is how many artifacts one query examines.
const maxExamined = 20_000

func (h *Backend) graphQuery(ctx context.Context, _ tool.Call, in graphQueryIn) (QueryResult, error) {
	if in.Limit == 0 {
		in.Limit = 100
	}
	if text := strings.TrimSpace(in.Query); isName(text) {
		a, err := h.get(ctx, text)
		if err != nil {
			return QueryResult{}, err
		}
		return QueryResult{Results: []ArtifactView{h.view(a)}, Count: 1, Examined: 1, Complete: true}, nil
	}
	q, err := parseQuery(in.Query, in.Variables)
	if err != nil {
		return QueryResult{}, err
	}
	return h.examine(ctx, q, in.Limit)
}

// isName reports whether a query is only the name of an artifact.
func isName(text string) bool {
	_, err := cas.ParsePrefix(strings.TrimPrefix(text, "artifact_"))
	return err == nil
}

// examine tests artifacts with a query, a page at a time, after the store's indexes
// have narrowed them.
func (h *Backend) examine(ctx context.Context, q condition, limit int) (QueryResult, error) {
	family := &family{hoot: h, ctx: ctx, known: map[string]map[cas.Ref]bool{}}
	search, err := h.narrowed(ctx, q)
	if err != nil {
		return QueryResult{}, err
	}
	result := QueryResult{Results: []ArtifactView{}}
	for {
		page, err := h.files.Search(ctx, search)
		if err != nil {
			return QueryResult{}, err
		}
		list, err := h.described(ctx, page.Artifacts...)
		if err != nil {
			return QueryResult{}, err
		}
		for i := range list {
			result.Examined++
			fits, err := q.holds(&list[i], family)
			if err != nil {
				return QueryResult{}, err
			}
			if !fits {
				continue
			}
			if result.Count == limit {
				return result, nil
			}
			result.Results = append(result.Results, h.view(list[i]))
			result.Count++
		}
		if page.Next == "" {
			result.Complete = true
			return result, nil
		}
		if result.Examined >= maxExamined {
			return result, nil
		}
		search.Cursor = page.Next
	}
}

// narrowed is the part of a query that an index can answer: the terms that must
// hold.
func (h *Backend) narrowed(ctx context.Context, q condition) (artifact.Query, error) {
	s := artifact.Query{Limit: 200}
	for _, t := range required(q) {
		if t.op != "=" {
			continue
		}
		switch t.field {
		case "tag":
			s.Tags = append(s.Tags, t.text)
		case "creator":
			if t.text != unknown { // which stands for no creator
				s.Creator = t.text
			}
		case "name":
			s.Name = t.text
		case "parent":
			parent, err := h.stored(ctx, t.text)
			if err != nil {
				return s, err
			}
			s.Parent = parent.Hash
		}
	}
	s.Tags = slices.Compact(s.Tags)
	return s, nil
}

// family finds ancestors and descendants, each set once per query.
type family struct {
	hoot  *Backend
	ctx   context.Context // lives as long as one query
	known map[string]map[cas.Ref]bool
}

// of returns all descendants or all ancestors of an artifact.
func (f *family) of(relation, name string) (map[cas.Ref]bool, error) {
	key := relation + " " + name
	if set, done := f.known[key]; done {
		return set, nil
	}
	start, err := f.hoot.stored(f.ctx, name)
	if err != nil {
		return nil, err
	}
	set := map[cas.Ref]bool{}
	if relation == "descendant" { // name is its descendant: search upwards
		err = f.above(start, set)
	} else {
		err = f.below(start, set)
	}
	f.known[key] = set
	return set, err
}

func (f *family) above(a artifact.Artifact, set map[cas.Ref]bool) error {
	for !a.Parent.IsZero() && len(set) < maxExamined {
		set[a.Parent] = true
		var err error
		if a, err = f.hoot.stored(f.ctx, a.Parent.String()); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) below(a artifact.Artifact, set map[cas.Ref]bool) error {
	for waiting := []cas.Ref{a.Hash}; len(waiting) > 0 && len(set) < maxExamined; waiting = waiting[1:] {
		for search := (artifact.Query{Parent: waiting[0], Limit: 200}); ; {
			page, err := f.hoot.files.Search(f.ctx, search)
			if err != nil {
				return err
			}
			for _, child := range page.Artifacts {
				if !set[child.Hash] {
					set[child.Hash] = true
					waiting = append(waiting, child.Hash)
				}
			}
			if search.Cursor = page.Next; search.Cursor == "" {
				break
			}
		}
	}
	return nil
}

func (h *Backend) identityTools() []toolset.Tool {
	return []toolset.Tool{
		define("graph_bind", changes(), h.graphBind),
		define("graph_tag", puts(), h.graphTag),
		define("graph_connect", puts(), h.graphConnect),
		define("graph_find", reads(), h.graphFind),
	}
}

// IdentityHint is a property by which a device or person can be recognised.
type IdentityHint struct {
	Kind       string   `json:"kind" jsonschema:"what it is, such as usb_id or alsa_name" min:"1" max:"128"`
	Value      string   `json:"value" jsonschema:"its value" min:"1" max:"512"`
	Confidence *float64 `json:"confidence,omitempty" jsonschema:"confidence from 0 to 1; default 1" min:"0" max:"1"`
}

type bindIn struct {
	ID    string         `json:"id" jsonschema:"a name for programs, such as jdxi" min:"1" max:"128"`
	Name  string         `json:"name" jsonschema:"a name for people" min:"1" max:"256"`
	Hints []IdentityHint `json:"hints,omitempty" jsonschema:"what it can be recognised by" max:"64"`
}

// Identity is a device, person or program.
type Identity struct {
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Tags  []string       `json:"tags" jsonschema:"as namespace:value"`
	Hints []IdentityHint `json:"hints,omitempty"`
}

// Text is one line.
func (i Identity) Text() string {
	return fmt.Sprintf("%s (%s) [%s]", i.Name, i.ID, strings.Join(i.Tags, ", "))
}

// graphBind creates or updates an identity.
func (h *Backend) graphBind(ctx context.Context, _ tool.Call, in bindIn) (i Identity, err error) {
	err = h.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO hoot_identities (id, name, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name`, in.ID, in.Name, h.clock.Now().UnixMicro())
		for _, hint := range in.Hints {
			if err != nil {
				return err
			}
			confidence := 1.0
			if hint.Confidence != nil {
				confidence = *hint.Confidence
			}
			_, err = tx.Exec(ctx, `INSERT INTO hoot_identity_hints (identity, kind, value, confidence) VALUES ($1, $2, $3, $4)
				ON CONFLICT (identity, kind, value) DO UPDATE SET confidence = excluded.confidence`, in.ID, hint.Kind, hint.Value, confidence)
		}
		if err != nil {
			return err
		}
		i, err = identity(ctx, tx, in.ID)
		return err
	})
	return i, err
}

type graphTagIn struct {
	Identity  string `json:"identity_id" jsonschema:"id of an identity" min:"1" max:"128"`
	Namespace string `json:"namespace" jsonschema:"namespace of the tag, such as role" min:"1" max:"128"`
	Value     string `json:"value" jsonschema:"value of the tag, such as synth" min:"1" max:"256"`
}

func (h *Backend) graphTag(ctx context.Context, _ tool.Call, in graphTagIn) (i Identity, err error) {
	err = h.db.Write(ctx, func(tx *db.Tx) error {
		if i, err = identity(ctx, tx, in.Identity); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO hoot_identity_tags (identity, namespace, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			in.Identity, in.Namespace, in.Value)
		if err != nil {
			return err
		}
		i, err = identity(ctx, tx, in.Identity)
		return err
	})
	return i, err
}

type connectIn struct {
	From      string `json:"from_identity" jsonschema:"id of the source identity" min:"1" max:"128"`
	FromPort  string `json:"from_port" jsonschema:"source port" min:"1" max:"128"`
	To        string `json:"to_identity" jsonschema:"id of the target identity" min:"1" max:"128"`
	ToPort    string `json:"to_port" jsonschema:"target port" min:"1" max:"128"`
	Transport string `json:"transport,omitempty" jsonschema:"kind of connection, such as midi or audio" max:"128"`
}

// Connection connects a port of one identity to a port of another.
type Connection struct {
	ID        string `json:"connection_id"`
	From      string `json:"from_identity"`
	FromPort  string `json:"from_port"`
	To        string `json:"to_identity"`
	ToPort    string `json:"to_port"`
	Transport string `json:"transport,omitempty"`
}

// Text is one line.
func (c Connection) Text() string {
	return fmt.Sprintf("%s:%s is connected to %s:%s", c.From, c.FromPort, c.To, c.ToPort)
}

func (h *Backend) graphConnect(ctx context.Context, _ tool.Call, in connectIn) (c Connection, err error) {
	err = h.db.Write(ctx, func(tx *db.Tx) error {
		for _, id := range []string{in.From, in.To} {
			if _, err := identity(ctx, tx, id); err != nil {
				return err
			}
		}
		c = Connection{From: in.From, FromPort: in.FromPort, To: in.To, ToPort: in.ToPort}
		return tx.QueryRow(ctx, `INSERT INTO hoot_connections (id, from_identity, from_port, to_identity, to_port, transport) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (from_identity, from_port, to_identity, to_port) DO UPDATE SET transport = excluded.transport RETURNING id, transport`,
			newID("connection"), in.From, in.FromPort, in.To, in.ToPort, in.Transport).Scan(&c.ID, &c.Transport)
	})
	return c, err
}

type findIn struct {
	Name      string `json:"name,omitempty" jsonschema:"part of a name or id" max:"256"`
	Namespace string `json:"tag_namespace,omitempty" jsonschema:"only those with a tag in this namespace" max:"128"`
	Value     string `json:"tag_value,omitempty" jsonschema:"only those with a tag of this value" max:"256"`
}

// IdentityMatches is the matching identities and their connections.
type IdentityMatches struct {
	Identities  []Identity   `json:"identities"`
	Connections []Connection `json:"connections" jsonschema:"the connections of these identities"`
	Count       int          `json:"count"`
}

// Text has one line per item.
func (f IdentityMatches) Text() string {
	lines := []string{fmt.Sprintf("%d identities", f.Count)}
	for _, i := range f.Identities {
		lines = append(lines, i.Text())
	}
	for _, c := range f.Connections {
		lines = append(lines, c.Text())
	}
	return strings.Join(lines, "\n")
}

// maxIdentities is the largest number of matches.
const maxIdentities = 500

func (h *Backend) graphFind(ctx context.Context, _ tool.Call, in findIn) (f IdentityMatches, err error) {
	where, args := []string{"TRUE"}, []any{}
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if in.Name != "" {
		part := "%" + likely.Replace(strings.ToLower(in.Name)) + "%"
		add(`(lower(name) LIKE ? ESCAPE '\' OR lower(id) LIKE ? ESCAPE '\')`, part, part)
	}
	if in.Namespace != "" || in.Value != "" {
		add("id IN (SELECT identity FROM hoot_identity_tags WHERE (namespace = ? OR ? = '') AND (value = ? OR ? = ''))", in.Namespace, in.Namespace, in.Value, in.Value)
	}
	err = h.db.Read(ctx, func(tx *db.Tx) error {
		f = IdentityMatches{Identities: []Identity{}, Connections: []Connection{}}
		ids, err := db.All(ctx, tx, db.Column[string], fmt.Sprintf("SELECT id FROM hoot_identities WHERE %s ORDER BY name, id LIMIT %d", strings.Join(where, " AND "), maxIdentities), args...)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			i, err := identity(ctx, tx, id)
			if err != nil {
				return err
			}
			f.Identities = append(f.Identities, i)
		}
		in, args := placeholders(ids)
		connections, err := db.All(ctx, tx, scanConnection, "SELECT id, from_identity, from_port, to_identity, to_port, transport FROM hoot_connections WHERE from_identity IN ("+in+") OR to_identity IN ("+in+") ORDER BY id", args...)
		f.Connections = append(f.Connections, connections...)
		return err
	})
	f.Count = len(f.Identities)
	return f, err
}

// likely escapes the wildcards of LIKE.
var likely = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

func scanConnection(row db.Scanner) (c Connection, err error) {
	err = row.Scan(&c.ID, &c.From, &c.FromPort, &c.To, &c.ToPort, &c.Transport)
	return c, err
}

// identity reads an identity with its tags and hints.
func identity(ctx context.Context, tx *db.Tx, id string) (i Identity, err error) {
	err = tx.QueryRow(ctx, "SELECT id, name FROM hoot_identities WHERE id = $1", id).Scan(&i.ID, &i.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return i, fault.New(fault.NotFound, "no identity %s", id).WithHint("create it with graph_bind, or find it with graph_find")
	}
	if err != nil {
		return i, err
	}
	tags, err := db.All(ctx, tx, db.Column[string], "SELECT namespace || ':' || value FROM hoot_identity_tags WHERE identity = $1 ORDER BY namespace, value", id)
	if err != nil {
		return i, err
	}
	i.Tags = append([]string{}, tags...)
	i.Hints, err = db.All(ctx, tx, func(row db.Scanner) (hint IdentityHint, err error) {
		hint.Confidence = new(float64)
		err = row.Scan(&hint.Kind, &hint.Value, hint.Confidence)
		return hint, err
	}, "SELECT kind, value, confidence FROM hoot_identity_hints WHERE identity = $1 ORDER BY kind, value", id)
	return i, err
}
