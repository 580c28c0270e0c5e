package personal

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the table with values of people, which are never shown.
func Personal() []personal.Table {
	return []personal.Table{{Name: "personal_values", Where: "OWNER(owner)", Hidden: []string{"sealed"}}}
}
