package report

import _ "embed" // the schema

// Schema is the JSON schema (draft 7) of what [Report.WriteJSON] writes.
//
//go:embed schema.json
var Schema []byte
