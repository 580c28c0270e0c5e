// Package results stores results that are too large to show, for a limited time under a
// short handle that scripts and models can use, and learns the shapes of results of
// tools that declare no output schema.
package results

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a store. Zero fields mean the default beside them.
type Options struct {
	Count int           // stored results per user: 100
	Bytes int64         // of all results of a user: 64 MiB
	Age   time.Duration // without being read, before deletion: 24 hours
	Tools int           // whose shapes are stored: 2,000
	Clock clock.Clock   // the system clock
	Log   *slog.Logger  // discards
	Flow  Flow          // follows no labels
}

// Flow remembers the data-flow labels of stored results.
type Flow interface {
	Recall(ctx context.Context, name string) error
	Remember(ctx context.Context, name string) error
}

func (o Options) orDefault() Options {
	o.Count = cmp.Or(o.Count, 100)
	o.Bytes = cmp.Or(o.Bytes, 64<<20)
	o.Age = cmp.Or(o.Age, 24*time.Hour)
	o.Tools = cmp.Or(o.Tools, 2000)
	o.Clock = cmp.Or(o.Clock, clock.Real())
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Store holds results and shapes. Within a set of tools, an owner reaches what was stored
// within that set; the set is that of the principal of ctx. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	learned learnedShapes
}

// Open opens the store in a database and migrates its tables. Close waits until all
// learned shapes are written.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "results", Migrations); err != nil {
		return nil, err
	}
	s := &Store{db: database, options: o.orDefault()}
	return s, s.load(ctx)
}

// LearnCalls learns the shape of results from calls of upstream tools that declare no
// output schema.
func (s *Store) LearnCalls() tool.Step {
	return tool.Step{Name: "shapes", After: func(_ context.Context, i *tool.Invocation) {
		if i.Err == nil && !i.Asked && i.Result.Task == "" && !i.Relayed && i.Info.Output == nil && i.Info.Space != "" {
			s.Learn(i.Info, i.Result) //nolint:contextcheck // it is stored later, when the call has ended
		}
	}}
}

// Personal lists the tables with results of tools that a person called.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "kept_results", Where: "OWNER(owner)"},
		{Name: "kept_result_numbers", Where: "OWNER(owner)"},
	}
}

// handlePrefix begins the handles of stored results.
const handlePrefix = "$r"

// Stored is a stored result.
type Stored struct {
	Handle  string // "$r12"
	Source  string // the tool it came from
	Shape   string // its fields and types
	Size    int64  // in bytes
	Created time.Time
	Expires time.Time // extended when it is read
}

// Put stores a value for its owner, and deletes the owner's oldest results if there are
// too many.
func (s *Store) Put(ctx context.Context, owner, source string, value json.RawMessage) (Stored, error) {
	size := int64(len(value))
	if size > s.options.Bytes {
		return Stored{}, fault.New(fault.Limit, "a result of %d bytes is too large to store", size).
			WithHint("ask for less of it, or work on it in a script that returns only what is needed")
	}
	now := s.options.Clock.Now()
	stored := Stored{
		Source: source, Shape: redact.Cut(ShapeOf(value).String(), longestShape), Size: size, Created: now, Expires: now.Add(s.options.Age),
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		number, err := s.number(ctx, tx, owner)
		if err != nil {
			return err
		}
		stored.Handle = handlePrefix + strconv.FormatInt(number, 10)
		at := now.UnixMicro()
		if _, err := tx.Exec(ctx, `INSERT INTO kept_results (owner, number, source, shape, size, created, used, value, toolset)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, owner, number, source, stored.Shape, size, at, at, []byte(value), principal.Of(ctx).Set); err != nil {
			return err
		}
		return s.forget(ctx, tx, owner, now)
	})
	if err == nil && s.options.Flow != nil {
		err = s.options.Flow.Remember(ctx, flowName(owner, stored.Handle))
	}
	return stored, err
}

// flowName is the name under which the labels of a result are remembered.
func flowName(owner, handle string) string { return "result:" + owner + "/" + handle }

// number is the owner's next number.
func (s *Store) number(ctx context.Context, tx *db.Tx, owner string) (number int64, err error) {
	if _, err := tx.Exec(ctx, `INSERT INTO kept_result_numbers (owner, last) VALUES ($1, 1)
		ON CONFLICT (owner) DO UPDATE SET last = kept_result_numbers.last + 1`, owner); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT last FROM kept_result_numbers WHERE owner = $1`, owner).Scan(&number)
	return number, err
}

// forget deletes results that are too old, of all owners, and too many, of this owner.
func (s *Store) forget(ctx context.Context, tx *db.Tx, owner string, now time.Time) error {
	if _, err := tx.Exec(ctx, `DELETE FROM kept_results WHERE used < $1`, now.Add(-s.options.Age).UnixMicro()); err != nil {
		return err
	}
	type row struct{ number, size int64 }
	rows, err := db.All(ctx, tx, func(from db.Scanner) (r row, err error) {
		return r, from.Scan(&r.number, &r.size)
	}, `SELECT number, size FROM kept_results WHERE owner = $1 ORDER BY number DESC`, owner)
	if err != nil {
		return err
	}
	total := int64(0)
	for i, r := range rows {
		if total += r.size; i >= s.options.Count || total > s.options.Bytes {
			_, err := tx.Exec(ctx, `DELETE FROM kept_results WHERE owner = $1 AND number <= $2`, owner, r.number)
			return err
		}
	}
	return nil
}

const (
	storedColumns = `number, source, shape, size, created, used`
	// reachable are the results of an owner within a set of tools that are not too old.
	reachable = ` FROM kept_results WHERE owner = $1 AND ($2 = '' OR toolset = $2) AND used >= $3`
)

func (s *Store) scan(from db.Scanner, more ...any) (k Stored, err error) {
	var number, created, used int64
	err = from.Scan(append([]any{&number, &k.Source, &k.Shape, &k.Size, &created, &used}, more...)...)
	k.Handle = handlePrefix + strconv.FormatInt(number, 10)
	k.Created, k.Expires = time.UnixMicro(created).UTC(), time.UnixMicro(used).UTC().Add(s.options.Age)
	return k, err
}

// List lists an owner's results, the newest first.
func (s *Store) List(ctx context.Context, owner string) (all []Stored, err error) {
	oldest := s.options.Clock.Now().Add(-s.options.Age).UnixMicro()
	return db.Find(ctx, s.db, func(from db.Scanner) (Stored, error) { return s.scan(from) },
		`SELECT `+storedColumns+reachable+` ORDER BY number DESC`, owner, principal.Of(ctx).Set, oldest)
}

// get reads a result by its handle, and extends its time.
func (s *Store) get(ctx context.Context, owner, handle string) (value json.RawMessage, err error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(handle), handlePrefix)
	number, wrong := strconv.ParseInt(digits, 10, 64)
	if !ok || wrong != nil {
		return nil, fault.New(fault.InvalidParams, "%q is not the handle of a result", redact.Cut(handle, 40)).WithHint("handles look like $r12")
	}
	if s.options.Flow != nil {
		if err := s.options.Flow.Recall(ctx, flowName(owner, handlePrefix+strconv.FormatInt(number, 10))); err != nil {
			return nil, err
		}
	}
	now := s.options.Clock.Now()
	err = s.db.QueryRow(ctx, `SELECT value`+reachable+` AND number = $4`,
		owner, principal.Of(ctx).Set, now.Add(-s.options.Age).UnixMicro(), number).Scan((*[]byte)(&value))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, s.missing(ctx, owner, handle)
	}
	if err != nil {
		return nil, err
	}
	return value, s.db.Exec(ctx, `UPDATE kept_results SET used = $1 WHERE owner = $2 AND number = $3`, now.UnixMicro(), owner, number)
}

func (s *Store) missing(ctx context.Context, owner, handle string) error {
	err := fault.New(fault.NotFound, "no result %s", redact.Cut(handle, 40))
	all, listErr := s.List(ctx, owner)
	if listErr != nil || len(all) == 0 {
		return err.WithHint("no results are stored; they expire after %s, call the tool again", s.options.Age)
	}
	names := make([]string, 0, 10)
	for _, k := range all[:min(len(all), 10)] {
		names = append(names, k.Handle)
	}
	return err.WithHint("stored: %s; results expire %s after they were last read", strings.Join(names, ", "), s.options.Age)
}

// Read is a stored result, or the part at a JSON pointer: "" is all of it,
// "/items/0/name" the name of the first item.
func (s *Store) Read(ctx context.Context, owner, handle, pointer string) (json.RawMessage, error) {
	value, err := s.get(ctx, owner, handle)
	if err != nil {
		return nil, err
	}
	return follow(value, pointer)
}

// Part is a part of a list or of a text.
type Part struct {
	Value json.RawMessage
	Total int // items or characters in all
}

// Slice skips items of a list, or characters of a text, and returns the next count.
func (s *Store) Slice(ctx context.Context, owner, handle, pointer string, skip, count int) (Part, error) {
	value, err := s.Read(ctx, owner, handle, pointer)
	if err != nil {
		return Part{}, err
	}
	skip, count = max(skip, 0), max(count, 0)
	if text, ok := rawjson.Text(value); ok {
		return sliceText(text, skip, count)
	}
	items, ok := rawjson.Items(value)
	if !ok {
		return Part{}, fault.New(fault.InvalidParams, "%s%s is neither a list nor a text", handle, pointer).
			WithHint("%s", inside(value))
	}
	from := min(skip, len(items))
	raw, err := json.Marshal(items[from:min(from+count, len(items))])
	return Part{raw, len(items)}, err
}

func sliceText(text string, skip, count int) (Part, error) {
	characters := []rune(text)
	from := min(skip, len(characters))
	raw, err := json.Marshal(string(characters[from:min(from+count, len(characters))]))
	return Part{raw, len(characters)}, err
}

// follow resolves a JSON pointer.
func follow(value json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" || pointer == "/" {
		return value, nil
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, fault.New(fault.InvalidParams, "%q is not a JSON pointer", redact.Cut(pointer, 80)).
			WithHint(`write "/items/0/name": a slash before every step, lists count from 0`)
	}
	at := value
	for _, step := range strings.Split(pointer[1:], "/") {
		next, ok := rawjson.Descend(at, step)
		if !ok {
			return nil, fault.New(fault.NotFound, "no value at %s: there is no %q", redact.Cut(pointer, 80), redact.Cut(step, 40)).
				WithHint("%s", inside(at))
		}
		at = next
	}
	return at, nil
}

// inside describes the contents of a value, for hints.
func inside(value json.RawMessage) string {
	if items, ok := rawjson.Items(value); ok {
		return "it is a list of " + strconv.Itoa(len(items)) + " items, counted from 0"
	}
	if !rawjson.IsObject(value) {
		return "it is " + redact.Cut(string(value), 60)
	}
	var names []string
	rawjson.Each(value, func(name string, _ json.RawMessage) bool {
		names = append(names, redact.Cut(name, 40))
		return len(names) < 20
	})
	return "it has " + strings.Join(names, ", ")
}

// Limits of a preview.
const (
	longestShape = 1500
	shownText    = 100
	shownItems   = 3
	shownFields  = 12
	shownDepth   = 4
	shownWhole   = 600 // of a value that is one text
)

// Preview is the beginning of a value: the first items of every list and the first
// characters of every text.
func Preview(value json.RawMessage) string {
	if text, ok := rawjson.Text(value); ok {
		return redact.Cut(text, shownWhole)
	}
	var b strings.Builder
	preview(&b, value, 0)
	return redact.Cut(b.String(), 2*longestShape)
}

func preview(b *strings.Builder, value json.RawMessage, depth int) {
	if text, ok := rawjson.Text(value); ok {
		fmt.Fprintf(b, "%q", redact.Cut(text, shownText))
		return
	}
	items, isList := rawjson.Items(value)
	switch {
	case isList && depth >= shownDepth:
		fmt.Fprintf(b, "[… %d items]", len(items))
	case isList:
		b.WriteByte('[')
		for i, item := range items[:min(len(items), shownItems)] {
			if i > 0 {
				b.WriteString(", ")
			}
			preview(b, item, depth+1)
		}
		if more := len(items) - shownItems; more > 0 {
			fmt.Fprintf(b, ", … %d more", more)
		}
		b.WriteByte(']')
	case rawjson.IsObject(value):
		previewObject(b, value, depth)
	default:
		b.WriteString(redact.Cut(string(value), shownText))
	}
}

func previewObject(b *strings.Builder, object json.RawMessage, depth int) {
	if depth >= shownDepth {
		b.WriteString("{…}")
		return
	}
	n := 0
	b.WriteByte('{')
	rawjson.Each(object, func(name string, value json.RawMessage) bool {
		n++
		switch {
		case n > shownFields:
		default:
			if n > 1 {
				b.WriteString(", ")
			}
			b.WriteString(redact.Cut(name, shownText) + ": ")
			preview(b, value, depth+1)
		}
		return true
	})
	if more := n - shownFields; more > 0 {
		fmt.Fprintf(b, ", … %d more", more)
	}
	b.WriteByte('}')
}
