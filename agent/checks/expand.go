package checks

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// expand returns the check with ${name} replaced in all its texts.
func expand(spec *protocol.CheckSpec, vars, facts map[string]string) (*protocol.CheckSpec, error) {
	out := proto.CloneOf(spec)
	return out, expandIn(out.ProtoReflect(), "check "+spec.GetName(), vars, facts)
}

func expandIn(m protoreflect.Message, what string, vars, facts map[string]string) (err error) {
	text := func(name protoreflect.Name, v protoreflect.Value) protoreflect.Value {
		if err != nil {
			return v
		}
		var s string
		if s, err = workload.ExpandText(what+": "+string(name), v.String(), vars, facts); err != nil {
			return v
		}
		return protoreflect.ValueOfString(s)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		isText := f.Kind() == protoreflect.StringKind
		switch {
		case f.IsMap() && f.MapValue().Kind() == protoreflect.StringKind:
			v.Map().Range(func(k protoreflect.MapKey, item protoreflect.Value) bool {
				v.Map().Set(k, text(f.Name(), item))
				return err == nil
			})
		case f.IsList() && isText:
			for i := range v.List().Len() {
				v.List().Set(i, text(f.Name(), v.List().Get(i)))
			}
		case isText:
			m.Set(f, text(f.Name(), v))
		case f.Kind() == protoreflect.MessageKind && !f.IsList():
			if err == nil {
				err = expandIn(v.Message(), what, vars, facts)
			}
		}
		return err == nil
	})
	return err
}
