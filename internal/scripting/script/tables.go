package script

import "embed"

// Migrations create the tables of published scripts and of sessions. They are one set,
// because the names of sets are stored in databases.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// MigrationSet is the name of that set.
const MigrationSet = "script"
