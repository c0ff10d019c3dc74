package api

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

type object = map[string]any

// OpenAPI describes the API. The schema of a group is made from store.Fields, as the reference of
// the group file is; the schemas of documents are made from their types.
func OpenAPI() map[string]any {
	schemas := object{"GroupFile": groupSchema()}
	for _, document := range []any{
		Shard{},
		Row{},
		Group{},
		Blocked{},
		Instance{},
		Story{},
		Event{},
		Events{},
		Result{},
		Problem{},
		Hold{},
		Freeze{},
		Protection{},
		Drill{},
		Adoption{},
		review.Report{},
	} {
		of := reflect.TypeOf(document)
		schemas[of.Name()] = structSchema(of)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Leasehold", "version": "1",
			"description": "What the page of a coordinator shows, and edits of groups and orders. See docs/api.md.",
		},
		"paths":      paths(),
		"components": object{"schemas": schemas, "securitySchemes": schemes()},
		"security":   []object{{"etcd": []string{}}, {"token": []string{}}, {"certificate": []string{}}},
	}
}

func schemes() object {
	return object{
		"etcd":        object{"type": "http", "scheme": "basic", "description": "A user of etcd: the only one for edits."},
		"token":       object{"type": "http", "scheme": "bearer", "description": "The token of the page: reads."},
		"certificate": object{"type": "mutualTLS", "description": "A client certificate of --http-client-ca: reads."},
	}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func list(of object) object { return object{"type": "array", "items": of} }

func content(schema object) object { return object{"application/json": object{"schema": schema}} }

func parameter(in, name, about string, schema object) object {
	return object{"in": in, "name": name, "required": in == "path", "description": about, "schema": schema}
}

var (
	text    = object{"type": "string"}
	watched = parameter("query", "watch", "true: as server-sent events, again whenever it changes",
		object{"type": "boolean"})
	ifMatch = parameter("header", "If-Match",
		`the ETag of what is edited: of the group, the shard or the instance, such as "81"`, text)
	ifNone  = parameter("header", "If-None-Match", "*, in place of If-Match: there must be no such group", text)
	confirm = parameter("query", "confirm",
		"the name of the group, instance, zone or shard, where machines are removed or made", text)
	once = parameter("header", "Idempotency-Key",
		"a word of the client's own: the order is given once, however often it is sent with this key", text)
	dryRun = parameter("query", "dryRun", "true: answers what would follow, and changes nothing",
		object{"type": "boolean"})
)

func operation(summary string, answer object, parameters ...object) object {
	problem := object{
		"description": "Why it was not done.",
		"content":     object{"application/problem+json": object{"schema": ref("Problem")}},
	}
	op := object{
		"summary": summary, "responses": object{
			"200": object{"description": "Done.", "content": content(answer)}, "default": problem,
		},
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	return op
}

// edit is an operation for users of etcd only.
func edit(op, body object, media ...string) object {
	op["security"] = []object{{"etcd": []string{}}}
	if body == nil {
		return op
	}
	bodies := object{}
	for _, m := range append([]string{"application/json"}, media...) {
		bodies[m] = object{"schema": body}
	}
	op["requestBody"] = object{"required": true, "content": bodies}
	return op
}

// order is an edit that the leader carries out.
func order(op, body object) object {
	if responses, is := op["responses"].(object); is {
		responses["202"] = object{
			"description": "The order is given; the leader carries it out.", "content": content(ref("Result")),
		}
	}
	return edit(op, body)
}

func paths() object {
	all := object{}
	for _, some := range []object{shardPaths(), groupPaths(), instancePaths(), journalPaths()} {
		maps.Copy(all, some)
	}
	return all
}

func shardPaths() object {
	zone := parameter("path", "zone", "the name of the zone", text)
	return object{
		Root + "shard": object{
			"get": operation("The shard: problems, groups, and how old the cache is.", ref("Shard"), watched),
		},
		Root + "shard/hold": object{
			"put": edit(operation("Puts the shard on hold.", ref("Result"), ifMatch), ref("Hold")),
			"delete": edit(operation("Ends the hold; a dry run says what follows.", ref("Result"), ifMatch, dryRun, confirm),
				nil),
		},
		Root + "shard/freeze": object{
			"put":    edit(operation("Has no planned work begin for a while.", ref("Result"), ifMatch), ref("Freeze")),
			"delete": edit(operation("Ends the freeze.", ref("Result"), ifMatch), nil),
		},
		Root + "zones/{zone}/evacuation": object{
			"put": order(operation("Has the instances of a zone replaced elsewhere.", ref("Result"), zone, ifMatch, confirm),
				nil),
			"delete": order(operation("Has the zone used again.", ref("Result"), zone, ifMatch), nil),
		},
	}
}

func groupPaths() object {
	group := parameter("path", "group", "the name of the group", text)
	actions := slices.Sorted(maps.Keys(GroupActions))
	return object{
		Root + "groups": object{"get": operation("The groups.", list(ref("Row")), watched)},
		Root + "groups/{group}": object{
			"get": operation("The spec, as PUT takes it; its ETag is for If-Match.", ref("GroupFile"), group),
			"put": edit(operation("Creates or changes the group, as leasehold group apply does.", ref("Result"), group, ifMatch,
				ifNone, dryRun, confirm), ref("GroupFile"), "application/yaml"),
			"delete": edit(operation("Deletes the group and its instances.", ref("Result"), group, ifMatch, confirm), nil),
		},
		Root + "groups/{group}/status": object{
			"get": operation("What is going on in the group, what is blocked and what would free it.", ref("Group"), group,
				watched),
		},
		Root + "groups/{group}/instances": object{
			"get": operation("The instances of the group.", list(ref("Instance")), group,
				parameter("query", "is", "only those that are so", object{"type": "string", "enum": view.Kinds}), watched),
			"post": order(operation("Creates an instance on demand, in addition to the size.", ref("Result"), group, ifMatch,
				once), nil),
		},
		Root + "groups/{group}/drills": object{
			"get": operation("The drills that the journal in memory knows, the newest first: what was promised, what was seen.",
				list(typeSchema(reflect.TypeFor[view.Drill]())), group, watched),
			"post": order(operation("Causes a failure on purpose, if the group can bear it.", ref("Result"), group, ifMatch,
				confirm, once), ref("Drill")),
		},
		Root + "groups/{group}/size": object{
			"put": edit(operation("Changes the size.", ref("Result"), group, ifMatch, dryRun, confirm), object{
				"type": "object", "required": []string{"size"}, "properties": object{"size": object{"type": "integer"}},
			}),
		},
		Root + "groups/{group}/actions/{action}": object{
			"post": order(operation("Does what the command of this name does; pause, resume, stop, start, restart and "+
				"rollback are edits of the group and need If-Match.", ref("Result"), group,
				parameter("path", "action", "the action", object{"type": "string", "enum": actions}), ifMatch, confirm, once), nil),
		},
	}
}

func instancePaths() object {
	instance := parameter("path", "instance", "the ID of the instance", text)
	return object{
		Root + "instances/{instance}": object{
			"get": operation("An instance, why it is so, and its story; also one that is gone.", ref("Story"), instance,
				watched),
		},
		Root + "instances/{instance}/protection": object{
			"put": order(operation("Protects the instance from scale-down, age limits and rolls.", ref("Result"), instance,
				ifMatch), ref("Protection")),
			"delete": order(operation("Ends the protection.", ref("Result"), instance, ifMatch), nil),
		},
		Root + "instances/{instance}/adoption": object{
			"post": order(operation("Makes a record for a machine that a provider lists and that has none.", ref("Result"),
				instance, ifMatch, once), ref("Adoption")),
		},
		Root + "instances/{instance}/actions/{action}": object{
			"post": order(operation("Gives the order that the command of this name gives.", ref("Result"), instance,
				parameter("path", "action", "the action", object{"type": "string", "enum": InstanceActions}), ifMatch,
				confirm, once), nil),
		},
	}
}

// journalPaths are the paths of what is read from the journal.
func journalPaths() object {
	return object{
		Root + "report": object{
			"get": operation("How well groups were kept, as far as the journal in memory reaches.", ref("Report"),
				parameter("query", "group", "this group alone", text),
				parameter("query", "span", "how far back, such as 24h; 168h if it is left out", text), watched),
		},
		Root + "events": object{
			"get": operation("The journal, the newest first.", ref("Events"),
				parameter("query", "group", "only entries about this group", text),
				parameter("query", "instance", "only entries about this instance", text),
				parameter("query", "rule", "only entries by this rule, or this family of rules", text),
				parameter("query", "text", "only entries with this text", text),
				parameter("query", "before", "only entries older than the one of this name", text),
				parameter("query", "limit", "how many", object{"type": "integer", "minimum": 1, "maximum": maxEvents}),
				parameter("query", "watch", "true: as server-sent events, each entry once", object{"type": "boolean"})),
		},
	}
}

// groupSchema is the schema of a group file, from the table of its fields.
func groupSchema() object {
	root := object{
		"type": "object", "properties": object{}, "required": []string{"name", "provider"}, "additionalProperties": false,
	}
	for _, f := range store.Fields {
		at := root
		steps := strings.Split(f.Path, ".")
		for i, step := range steps {
			name, many := strings.CutSuffix(step, "[]")
			properties, is := at["properties"].(object)
			if !is { // the table describes what is in it as well
				properties = object{}
				at["properties"], at["additionalProperties"] = properties, false
			}
			next, there := properties[name].(object)
			if !there {
				next = object{"type": "object", "properties": object{}, "additionalProperties": false}
				if i == len(steps)-1 {
					next = fieldSchema(f)
				}
				properties[name] = next
			}
			if at = next; many {
				items, is := next["items"].(object)
				if !is {
					items = object{"type": "object"}
					next["items"] = items
				}
				at = items
			}
		}
	}
	return root
}

// types are the schemas of field types.
var types = map[string]func() object{
	"string":  func() object { return object{"type": "string"} },
	"integer": func() object { return object{"type": "integer"} },
	"number":  func() object { return object{"type": "number"} },
	"boolean": func() object { return object{"type": "boolean"} },
	"duration": func() object {
		return object{"type": "string", "pattern": "^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$"}
	},
	"map of strings": func() object {
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	},
	"list of strings":      func() object { return list(object{"type": "string"}) },
	"list of status codes": func() object { return list(object{"type": "string"}) },
	"nested values":        func() object { return object{"type": "object"} },
	"port":                 func() object { return object{"type": []string{"string", "integer"}} },
	"integer or percentage": func() object {
		return object{"oneOf": []object{{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+%$"}}}
	},
	"word or command": func() object {
		return object{"oneOf": []object{{"type": "string"}, {
			"type": "object", "properties": object{"run": list(object{"type": "string"})}, "required": []string{"run"},
		}}}
	},
}

// typeOf is the schema of a field type. A list that is not in types is a list of objects, whose
// fields are in the table as well.
func typeOf(name string) (schema object, known bool) {
	if of, known := types[name]; known {
		return of(), true
	}
	if strings.HasPrefix(name, "list of ") {
		return list(object{"type": "object"}), true
	}
	return object{}, false
}

func fieldSchema(f store.Field) object {
	schema, _ := typeOf(f.Type)
	about := f.Doc
	if f.Allowed != "" {
		about += " Allowed: " + f.Allowed + "."
	}
	if f.Default != "" {
		about += " Default: " + f.Default + "."
	}
	if f.Rule != "" {
		about += " (" + f.Rule + ")"
	}
	schema["description"] = strings.TrimSpace(about)
	return schema
}

// structSchema is the schema of a document of this package.
func structSchema(of reflect.Type) object {
	properties, required := object{}, []string{}
	addFields(of, properties, &required)
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func addFields(of reflect.Type, properties object, required *[]string) {
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			addFields(f.Type, properties, required)
		default:
			properties[name] = typeSchema(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}

// described are the packages whose structs are described field by field where they occur; a record
// is an object, as it is stored.
var described = []string{
	reflect.TypeFor[view.Truth]().PkgPath(), reflect.TypeFor[review.Report]().PkgPath(),
	reflect.TypeFor[story.Problem]().PkgPath(),
}

func typeSchema(of reflect.Type) object {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case of == reflect.TypeFor[store.Duration]():
		return types["duration"]()
	case of == reflect.TypeFor[story.RemedyKind]():
		// no enum: an older client must be able to read a kind that a later release adds
		return object{
			"type": "string", "examples": story.RemedyKinds,
			"description": "command, inspection or advice; a later release may add others, of which the text is to be shown",
		}
	case of.Kind() == reflect.Pointer:
		return typeSchema(of.Elem())
	case of == reflect.TypeFor[json.RawMessage]():
		return object{"type": "object"}
	case of.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{} // it may be anything
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case of.Kind() == reflect.Struct && slices.Contains(described, of.PkgPath()):
		return structSchema(of)
	case of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[Shard]().PkgPath():
		return ref(of.Name())
	}
	switch of.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return list(typeSchema(of.Elem()))
	case reflect.Map:
		return object{"type": "object", "additionalProperties": typeSchema(of.Elem())}
	default: // a record, as it is stored
		return object{"type": "object"}
	}
}
