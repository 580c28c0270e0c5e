package signin

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the table with the tokens of people's sign-ins.
func Personal() []personal.Table {
	return []personal.Table{{Name: "signin_tokens", Where: "person = PERSON", Hidden: []string{"sealed"}}}
}
