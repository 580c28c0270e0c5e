package grpcapi

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/descriptorpb"
)

// repair corrects what reflection of grpc-js leaves out, so that the descriptions can be used.
func repair(set *descriptorpb.FileDescriptorSet) {
	homes := map[string]string{}
	for _, file := range set.GetFile() {
		nameEntries(file.GetMessageType())
		addHomes(homes, file.GetPackage(), file.GetName(), file.GetMessageType())
		for _, enum := range file.GetEnumType() {
			homes[join(file.GetPackage(), enum.GetName())] = file.GetName()
		}
	}
	for _, file := range set.GetFile() {
		importHomes(homes, file)
	}
}

func join(scope, name string) string { return strings.TrimPrefix(scope+"."+name, ".") }

// addHomes notes in which file messages and their nested types are.
func addHomes(homes map[string]string, scope, file string, messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		name := join(scope, message.GetName())
		homes[name] = file
		addHomes(homes, name, file, message.GetNestedType())
		for _, enum := range message.GetEnumType() {
			homes[join(name, enum.GetName())] = file
		}
	}
}

// importHomes adds the imports that a file lacks.
func importHomes(homes map[string]string, file *descriptorpb.FileDescriptorProto) {
	use := func(name string) {
		scope := file.GetPackage()
		if absolute, ok := strings.CutPrefix(name, "."); ok {
			name, scope = absolute, ""
		}
		for {
			if home, known := homes[join(scope, name)]; known {
				if home != file.GetName() && !slices.Contains(file.GetDependency(), home) {
					file.Dependency = append(file.Dependency, home)
				}
				return
			}
			if scope == "" {
				return
			}
			scope = scope[:max(strings.LastIndexByte(scope, '.'), 0)]
		}
	}
	useFields(file.GetMessageType(), use)
	for _, service := range file.GetService() {
		for _, method := range service.GetMethod() {
			use(method.GetInputType())
			use(method.GetOutputType())
		}
	}
}

func useFields(messages []*descriptorpb.DescriptorProto, use func(name string)) {
	for _, message := range messages {
		useFields(message.GetNestedType(), use)
		for _, field := range message.GetField() {
			if field.GetTypeName() != "" {
				use(field.GetTypeName())
			}
		}
	}
}

// nameEntries gives the entries of maps the names that the language prescribes.
func nameEntries(messages []*descriptorpb.DescriptorProto) {
	for _, message := range messages {
		nameEntries(message.GetNestedType())
		for _, entry := range message.GetNestedType() {
			if !entry.GetOptions().GetMapEntry() {
				continue
			}
			for _, field := range message.GetField() {
				scope, found := strings.CutSuffix(field.GetTypeName(), entry.GetName())
				if found && (scope == "" || strings.HasSuffix(scope, "."+message.GetName()+".")) {
					name := entryName(field.GetName())
					full := scope + name
					entry.Name, field.TypeName = &name, &full
					break
				}
			}
		}
	}
}

// entryName is the name of the entries of a map.
func entryName(field string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(field, "_") {
		first, size := utf8.DecodeRuneInString(part)
		if size > 0 {
			out.WriteRune(unicode.ToUpper(first))
			out.WriteString(part[size:])
		}
	}
	return out.String() + "Entry"
}
