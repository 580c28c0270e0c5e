// Package personal says which rows of the database belong to a person, so that all of
// them can be exported and erased. Each package that stores something of people lists its
// tables in a function Personal.
package personal

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/store/db"
)

// Person is whose rows are meant.
type Person struct {
	ID         string   `json:"id"`                   // in the table people
	Name       string   `json:"name"`                 // as others have seen it
	Principals []string `json:"principals,omitempty"` // that are the person's besides person:ID, such as key:NAME
	Pseudonym  string   `json:"pseudonym"`            // stands for the person in rows that stay
}

// Table is a table with rows of people.
type Table struct {
	Name string
	// Where selects the rows of a person. PERSON stands for the person's ID, and OWNER(column)
	// is true for rows whose column has a principal of the person, or the person in a chat.
	// FULLNAME stands for the name.
	Where string
	// Hidden are columns that are not exported: secrets, and hashes of them.
	Hidden []string
	// Set says what changes in rows that stay, because they are about others too. PSEUDONYM
	// stands for the person's pseudonym. Rows of tables without it are deleted.
	Set string
}

// prefix is that of the IDs of principals that are people.
const prefix = "person:"

// statement replaces the markers of a text, and returns the arguments for it.
func (p Person) statement(text string) (query string, args []any) {
	value := func(v string) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	for {
		before, rest, found := strings.Cut(text, "OWNER(")
		if !found {
			break
		}
		column, after, _ := strings.Cut(rest, ")")
		var ids []string
		for _, id := range slices.Concat([]string{prefix + p.ID}, p.Principals) {
			ids = append(ids, value(id))
		}
		organisations, chats := prefix+p.ID+"/", "%/"+p.ID
		text = fmt.Sprintf("%s(%s IN (%s) OR substr(%s, 1, %d) = %s OR %s LIKE %s)%s",
			before, column, strings.Join(ids, ", "), column, len(organisations), value(organisations), column, value(chats), after)
	}
	for _, marker := range [][2]string{{"PERSON", p.ID}, {"PSEUDONYM", p.Pseudonym}, {"FULLNAME", p.Name}} {
		if strings.Contains(text, marker[0]) {
			text = strings.ReplaceAll(text, marker[0], value(marker[1]))
		}
	}
	return text, args
}

// Row is a row as it is exported.
type Row struct {
	Table  string         `json:"table"`
	Values map[string]any `json:"values"`
}

// Export calls write for each row of the person.
func (t Table) Export(ctx context.Context, tx *db.Tx, p Person, write func(Row) error) (err error) {
	query, args := p.statement("SELECT * FROM " + t.Name + " WHERE " + t.Where)
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("export %s: %w", t.Name, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, err := t.values(rows, columns)
		if err != nil {
			return err
		}
		if err := write(Row{t.Name, values}); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t Table) values(rows *sql.Rows, columns []string) (map[string]any, error) {
	raw := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range raw {
		into[i] = &raw[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for i, column := range columns {
		if !slices.Contains(t.Hidden, column) {
			values[column] = readable(raw[i])
		}
	}
	return values, nil
}

// readable is a value as JSON shows it: JSON itself, text, or else base64.
func readable(v any) any {
	var content []byte
	switch v := v.(type) {
	case []byte:
		content = v
	case string:
		content = []byte(v)
	default:
		return v
	}
	switch {
	case len(content) > 0 && (content[0] == '{' || content[0] == '[') && json.Valid(content):
		return json.RawMessage(slices.Clone(content))
	case utf8.Valid(content):
		return string(content)
	default:
		return base64.StdEncoding.EncodeToString(content)
	}
}

// Erase deletes the rows of the person, or changes those that stay, and returns how many
// there were.
func (t Table) Erase(ctx context.Context, tx *db.Tx, p Person) (count int64, err error) {
	text := "DELETE FROM " + t.Name
	if t.Set != "" {
		text = "UPDATE " + t.Name + " SET " + t.Set
	}
	query, args := p.statement(text + " WHERE " + t.Where)
	return tx.Exec(ctx, query, args...)
}
