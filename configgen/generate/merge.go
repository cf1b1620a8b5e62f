package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// Change is something of a standing config that is changed.
type Change struct {
	// Field is what: max_batch_size, input.image, parameters.static_model.
	Field string `json:"field"`
	// From and To are the values; "" is none.
	From string `json:"from"`
	To   string `json:"to"`
	// Why is the reason: as asked, or what the model or the backend demands.
	Why string `json:"why"`
}

// merger changes a standing config to what the plan demands and what was asked for, and
// leaves everything else of it.
//
// What the model decides is demanded: name, backend, max_batch_size, tensors, and the
// form of the graph. What people choose is left unless a flag asks for it: instances,
// batching, versions, warm-up, devices and options.
type merger struct {
	*plan
	old    *standing
	wanted *configgen.Document
	patch  *configgen.Patch
	list   []Change
}

// merge gives the text of the standing config with its changes.
func (p *plan) merge(old *standing, wanted *configgen.Document) (string, []Change, error) {
	m := &merger{plan: p, old: old, wanted: wanted, patch: configgen.NewPatch(old.doc)}
	for _, step := range []func() error{m.identity, m.tensors, m.instanceGroups, m.batches, m.versions, m.warmUps, m.parameterEntries} {
		if err := step(); err != nil {
			return "", nil, err
		}
	}
	m.head()
	text, err := m.patch.Text()
	if err != nil {
		return "", nil, fault.New(fault.Internal, "change %s: %w", old.path, err)
	}
	if _, err := configgen.ParseLenient(old.path, []byte(text)); err != nil {
		return "", nil, fault.New(fault.Internal, "the changed config does not read: %w", err)
	}
	return text, m.list, nil
}

func (m *merger) changed(field, from, to, why string) {
	m.list = append(m.list, Change{field, from, to, why})
}

// whyOf is what the plan says of a field.
func (m *merger) whyOf(field, otherwise string) string {
	for _, c := range m.choices {
		if c.Field == field {
			return c.Why
		}
	}
	return otherwise
}

// own are npuctl's comments above a field of the wanted config.
func (m *merger) own(name string) []string {
	if f := m.wanted.Root.Field(name); f != nil {
		return f.Leading
	}
	return nil
}

// take sets a field to what the wanted config has, or takes it away where that has none.
func (m *merger) take(name, why string) {
	values := m.wanted.Root.Values(name)
	from, to := oneLine(m.old.doc.Root, name), oneLine(m.wanted.Root, name)
	if from == to {
		return
	}
	m.patch.Set(name, values, m.own(name))
	m.changed(name, from, to, m.whyOf(name, why))
}

// oneLine is a field in one line, for a list of changes; "" when it is not there.
func oneLine(root *configgen.Message, name string) string {
	if len(root.All(name)) == 0 {
		return ""
	}
	only := &configgen.Document{Root: &configgen.Message{Type: root.Type}}
	for _, f := range root.Copy().All(name) {
		stripComments(f)
		only.Root.Fields = append(only.Root.Fields, f)
	}
	text := strings.Join(strings.Fields(string(only.Print())), " ")
	return strings.TrimPrefix(strings.TrimPrefix(text, name+": "), name+" ")
}

func stripComments(f *configgen.Field) {
	f.Leading, f.Trailing = nil, ""
	for _, v := range f.Values {
		v.Leading, v.Trailing = nil, ""
		if v.Message != nil {
			v.Message.Trailing = nil
			for _, inner := range v.Message.Fields {
				stripComments(inner)
			}
		}
	}
}

// identity is the name, the backend and the largest batch.
func (m *merger) identity() error {
	c := m.old.config
	if c.Name != "" && c.Name != m.Name {
		m.take("name", "the server wants the name of the folder")
	}
	if c.Backend != m.Backend && platforms[c.Platform] != m.Backend {
		m.take("backend", "as asked")
	}
	if c.MaxBatchSize != m.maxBatch || !c.Has("max_batch_size") && m.maxBatch == 0 && !m.isGE() {
		m.take("max_batch_size", "what the model and the form of the graph allow")
	}
	return nil
}

// head writes the first comment anew, where npuctl had written one.
func (m *merger) head() {
	f := m.old.doc.Root.Field("name")
	if f == nil || !slices.ContainsFunc(f.Leading, func(c string) bool { return strings.HasPrefix(c, configgen.OwnMark+" Made by npuctl") }) {
		return
	}
	if own := m.own("name"); !slices.Equal(own, ownOf(f.Leading)) && m.old.config.Name == m.Name {
		m.patch.Set("name", f.Values, own)
	}
}

// ownOf are npuctl's own among comments.
func ownOf(comments []string) (out []string) {
	for _, c := range comments {
		if strings.HasPrefix(c, configgen.OwnMark) {
			out = append(out, c)
		}
	}
	return out
}

// tensors brings inputs and outputs to those of the model.
func (m *merger) tensors() error {
	c := m.old.config
	var inputs, outputs []standingTensor
	for i := range c.Input {
		in := &c.Input[i]
		inputs = append(inputs, standingTensor{in.Name, in.DataType, in.Dims, in.Reshape, in.Node})
	}
	for i := range c.Output {
		out := &c.Output[i]
		outputs = append(outputs, standingTensor{out.Name, out.DataType, out.Dims, out.Reshape, out.Node})
	}
	if err := m.side("input", inputs, m.inputs, true); err != nil {
		return err
	}
	return m.side("output", outputs, m.outputs, m.isGE())
}

// standingTensor is an input or output of the standing config.
type standingTensor struct {
	name    string
	kind    configgen.DataType
	dims    []int64
	reshape *configgen.Reshape
	node    configgen.Node
}

// side brings one side to the tensors of the model, in their order. needsAll is false
// where the config may leave some out.
func (m *merger) side(name string, have []standingTensor, want []port, needsAll bool) error {
	field := m.old.doc.Root.Values(name)
	var values []*configgen.Value
	isChanged := false
	wanted := m.wanted.Root.Values(name)
	for i, t := range want {
		at := slices.IndexFunc(have, func(h standingTensor) bool { return h.name == t.name })
		switch {
		case at < 0 && !needsAll && len(have) > 0:
			continue
		case at < 0:
			values, isChanged = append(values, wanted[i]), true
			m.changed(name+"."+t.name, "", oneValue(wanted[i]), "the model has it")
			continue
		}
		v, err := m.tensor(name, have[at], t, field[at], wanted[i])
		if err != nil {
			return err
		}
		isChanged = isChanged || v != field[at] || at != len(values)
		values = append(values, v)
	}
	for i, h := range have {
		if !slices.ContainsFunc(want, func(t port) bool { return t.name == h.name }) {
			isChanged = true
			m.changed(name+"."+h.name, oneValue(field[i]), "", "the model does not have it")
		}
	}
	if isChanged {
		m.patch.Set(name, keepRemoved(field, values), m.own(name))
	}
	return nil
}

// keepRemoved gives the comments of values that go to the one before, or else to the
// first: they are people's, and may speak of more than what goes.
func keepRemoved(old, values []*configgen.Value) []*configgen.Value {
	values = slices.Clone(values)
	last := 0
	for _, o := range old {
		if at := slices.IndexFunc(values, func(v *configgen.Value) bool { return tensorName(v) == tensorName(o) }); at >= 0 {
			last = at
			continue
		}
		comments := configgen.WithoutOwn(o.Leading)
		if o.Trailing != "" {
			comments = append(comments, o.Trailing)
		}
		if len(comments) == 0 || len(values) == 0 {
			continue
		}
		v := *values[last]
		v.Leading = append(slices.Clone(v.Leading), comments...)
		values[last] = &v
	}
	return values
}

func tensorName(v *configgen.Value) any {
	if f := v.Message.Field("name"); f != nil {
		return f.Values[0].Scalar
	}
	return nil
}

func oneValue(v *configgen.Value) string {
	root := &configgen.Message{Type: configgen.Root(), Fields: []*configgen.Field{{Type: configgen.Root().Field("input"), Name: "input", Values: []*configgen.Value{v}, Brackets: true}}}
	if v.Message.Type.Name != "ModelInput" {
		root.Fields[0].Type, root.Fields[0].Name = configgen.Root().Field("output"), "output"
	}
	text := oneLine(root, root.Fields[0].Name)
	return strings.TrimSuffix(strings.TrimPrefix(text, "[ "), " ]")
}

// tensor gives the block of one tensor: the standing one where it says the same, else
// a copy with what the model demands.
func (m *merger) tensor(side string, have standingTensor, t port, block, wanted *configgen.Value) (*configgen.Value, error) {
	dims, reshape := m.dims(t)
	if have.reshape != nil {
		seen := have.reshape.Shape // by the model
		if reshape == nil && !slices.Equal(seen, dims) && !(len(seen) == 0 && len(t.dims) == 0) {
			return nil, m.old.conflict(have.node.At("reshape"), "%s %s is reshaped to %v, and the model takes %v", side, t.name, seen, dims)
		}
	}
	isReshaped := have.reshape != nil && (reshape != nil) == (len(have.reshape.Shape) == 0)
	if have.kind == t.kind && (isReshaped || have.reshape == nil && reshape == nil && slices.Equal(have.dims, dims)) {
		return block, nil
	}
	for i, n := range dims {
		if n == open && len(have.dims) == len(dims) && have.dims[i] > 0 && have.reshape == nil {
			return nil, m.old.conflict(have.node.ValueAt("dims", i), "%s %s is %v here, and the model leaves dim %d open", side, t.name, have.dims, i).
				With("fix it in the graph, too (--dim, --input-shape), or write -1 there; --force makes the config anew")
		}
	}
	v := *block
	v.Message = block.Message.Copy()
	v.Leading = append(configgen.WithoutOwn(block.Leading), ownOf(wanted.Leading)...)
	why := "the model's own"
	for _, name := range []string{"data_type", "dims", "reshape"} {
		if isReshaped && name != "data_type" {
			continue
		}
		v.Message.Set(name, wanted.Message.Values(name)...)
	}
	m.changed(side+"."+t.name, oneValue(block), oneValue(&v), why)
	return &v, nil
}

func (m *merger) instanceGroups() error {
	asks := m.asked.instances || !m.isGE() && (m.asked.devices || m.CPU)
	groups := m.old.config.InstanceGroup
	switch {
	case !asks:
		return nil
	case len(groups) == 0:
		m.take("instance_group", "as asked")
		return nil
	case len(groups) > 1:
		return m.old.conflict(m.old.config.At("instance_group"), "there are %d instance groups, and --instances and --devices are for one", len(groups))
	}
	block, wanted := m.old.doc.Root.Values("instance_group")[0], m.wanted.Root.Values("instance_group")[0]
	v := *block
	v.Message = block.Message.Copy()
	names := []string{"count"}
	if !m.isGE() && (m.asked.devices || m.CPU) {
		names = append(names, "kind", "gpus")
	}
	isChanged := false
	for _, name := range names {
		if oneLine(v.Message, name) != oneLine(wanted.Message, name) {
			v.Message.Set(name, wanted.Message.Values(name)...)
			isChanged = true
		}
	}
	if isChanged {
		from := oneLine(m.old.doc.Root, "instance_group")
		m.patch.Set("instance_group", []*configgen.Value{&v}, m.own("instance_group"))
		m.changed("instance_group", from, oneLineOf("instance_group", &v), "as asked")
	}
	return nil
}

// oneLineOf is a field with one value as one line.
func oneLineOf(name string, v *configgen.Value) string {
	t := configgen.Root().Field(name)
	return oneLine(&configgen.Message{Type: configgen.Root(), Fields: []*configgen.Field{{Type: t, Name: name, Values: []*configgen.Value{v}, Brackets: t.Repeated}}}, name)
}

// batches changes what was asked of batches, and nothing else of the block.
func (m *merger) batches() error {
	c := m.old.config
	switch {
	case !m.asked.batching && !m.NoBatching:
		return m.demandedBatches()
	case m.batching == nil && c.DynamicBatching == nil:
		return nil
	case m.batching != nil && c.SequenceBatching != nil:
		return m.old.conflict(c.At("sequence_batching"), "sequences are batched, and a model has one way of batching")
	case m.batching == nil || c.DynamicBatching == nil:
		m.take("dynamic_batching", "as asked")
		return nil
	}
	block, wanted := m.old.doc.Root.Values("dynamic_batching")[0], m.wanted.Root.Values("dynamic_batching")[0]
	v := *block
	v.Message = block.Message.Copy()
	for _, name := range m.batchingFields() {
		v.Message.Set(name, wanted.Message.Values(name)...)
	}
	m.queuePolicy(v.Message, wanted.Message)
	if m.Preferred == nil {
		m.trimSizes(v.Message, c.DynamicBatching.PreferredBatchSize)
	}
	from, to := oneLine(m.old.doc.Root, "dynamic_batching"), oneLineOf("dynamic_batching", &v)
	if from != to {
		m.patch.Set("dynamic_batching", []*configgen.Value{&v}, m.own("dynamic_batching"))
		m.changed("dynamic_batching", from, to, "as asked")
	}
	return nil
}

// queuePolicy changes what was asked of the queue's policy, and leaves the rest of it.
func (m *merger) queuePolicy(block, wanted *configgen.Message) {
	const name = "default_queue_policy"
	asked := m.asked.queue.policyFields()
	have, want := block.Values(name), wanted.Values(name)
	switch {
	case len(asked) == 0 || len(want) == 0:
		return
	case len(have) == 0:
		block.Set(name, want...)
		return
	}
	v := *have[len(have)-1]
	v.Message = v.Message.Copy()
	for _, field := range asked {
		v.Message.Set(field, want[0].Message.Values(field)...)
	}
	block.Set(name, &v)
}

// demandedBatches changes of a block that nobody spoke of what can be no more.
func (m *merger) demandedBatches() error {
	d := m.old.config.DynamicBatching
	if d == nil {
		return nil
	}
	tooLarge := slices.IndexFunc(d.PreferredBatchSize, func(n int32) bool { return n > m.maxBatch })
	reason := m.noMerge()
	switch {
	case reason != "" && m.isOwn("dynamic_batching"):
		from := oneLine(m.old.doc.Root, "dynamic_batching")
		m.patch.Set("dynamic_batching", nil, nil)
		m.changed("dynamic_batching", from, "", "requests are not merged: "+reason)
	case tooLarge < 0:
	case m.maxBatch == 0:
		return m.old.conflict(d.ValueAt("preferred_batch_size", tooLarge), "preferred size %d, and max_batch_size becomes 0", d.PreferredBatchSize[tooLarge])
	default:
		block := *m.old.doc.Root.Values("dynamic_batching")[0]
		block.Message = block.Message.Copy()
		m.trimSizes(block.Message, d.PreferredBatchSize)
		from := oneLine(m.old.doc.Root, "dynamic_batching")
		m.patch.Set("dynamic_batching", []*configgen.Value{&block}, ownOf(m.old.doc.Root.Field("dynamic_batching").Leading))
		m.changed("dynamic_batching", from, oneLineOf("dynamic_batching", &block), "no batch is larger than max_batch_size")
	}
	return nil
}

// trimSizes takes out preferred sizes above the largest batch, which the server refuses;
// where none is left, the largest batch is preferred.
func (m *merger) trimSizes(block *configgen.Message, sizes []int32) {
	kept := slices.DeleteFunc(slices.Clone(sizes), func(n int32) bool { return n > m.maxBatch })
	if len(kept) == len(sizes) {
		return
	}
	if len(kept) == 0 {
		kept = []int32{m.maxBatch}
	}
	values := make([]*configgen.Value, len(kept))
	for i, n := range kept {
		values[i] = &configgen.Value{Scalar: n}
	}
	block.Set("preferred_batch_size", values...)
}

// isOwn says whether npuctl wrote a field of the standing config, by its comment.
func (m *merger) isOwn(name string) bool {
	f := m.old.doc.Root.Field(name)
	return f != nil && len(ownOf(f.Leading)) > 0
}

// batchingFields are the fields of dynamic_batching that flags ask for.
func (m *merger) batchingFields() (names []string) {
	q := m.asked.queue
	for _, f := range []struct {
		isAsked bool
		name    string
	}{
		{m.Preferred != nil, "preferred_batch_size"},
		{m.asked.delay > 0, "max_queue_delay_microseconds"},
		{q.PreserveOrdering, "preserve_ordering"},
		{q.Priorities > 0, "priority_levels"}, {q.Priorities > 0 || q.DefaultPriority > 0, "default_priority_level"},
	} {
		if f.isAsked {
			names = append(names, f.name)
		}
	}
	return names
}

func (m *merger) versions() error {
	if m.asked.versions {
		m.take("version_policy", "as asked")
	}
	return nil
}

// warmUps replaces the warm-up requests that npuctl wrote.
func (m *merger) warmUps() error {
	if m.Warmup == nil {
		return nil
	}
	var values []*configgen.Value
	for _, v := range m.old.doc.Root.Values("model_warmup") {
		if f := v.Message.Field("name"); f != nil && strings.HasPrefix(fmt.Sprint(f.Values[0].Scalar), warmupName) {
			continue
		}
		values = append(values, v)
	}
	values = append(values, m.wanted.Root.Values("model_warmup")...)
	only := &configgen.Message{Type: configgen.Root(), Fields: []*configgen.Field{{Type: configgen.Root().Field("model_warmup"), Name: "model_warmup", Values: values, Brackets: true}}}
	from, to := oneLine(m.old.doc.Root, "model_warmup"), oneLine(only, "model_warmup")
	if from != to {
		m.patch.Set("model_warmup", values, m.own("model_warmup"))
		m.changed("model_warmup", from, to, m.whyOf("model_warmup", "as asked"))
	}
	return nil
}

// parameterEntries brings the parameters of the backend to the form of the graph, and
// to what was asked for.
func (m *merger) parameterEntries() error {
	if !m.isGE() {
		return nil
	}
	for _, key := range m.demandedKeys() {
		from, hasOld := m.old.config.Parameter(key)
		wanted := m.wantedEntry(key)
		switch {
		case wanted == nil && hasOld && (key != "static_model" || strings.TrimSpace(from) == "1"):
			m.patch.RemoveEntry("parameters", key)
			m.changed("parameters."+key, from, "", fmt.Sprintf("the form of the graph is %s", m.form))
		case wanted != nil:
			to := fmt.Sprint(wanted.Message.Field("value").Values[0].Message.Field("string_value").Values[0].Scalar)
			if hasOld && from == to {
				continue
			}
			m.patch.SetEntry("parameters", key, wanted, wanted.Leading)
			m.changed("parameters."+key, from, to, m.whyOf("parameters."+key, "as asked"))
		}
	}
	for _, key := range m.supersededKeys() {
		if from, ok := m.old.config.Parameter(key); ok {
			m.patch.RemoveEntry("parameters", key)
			m.changed("parameters."+key, from, "", "another way to say the precision, as asked")
		}
	}
	return nil
}

// demandedKeys are the parameters that the plan decides.
func (m *merger) demandedKeys() []string {
	keys := []string{"static_model", "graph.ge.inputShape", "graph.ge.dynamicDims", "graph.ge.dynamicNodeType"}
	for _, k := range []struct {
		isAsked bool
		key     string
	}{
		{m.asked.devices, "device_ids"},
		{m.asked.streams, "device_exec_blocks"},
		{slices.Contains(m.Dump, "graph"), "dump_graph"},
		{slices.Contains(m.Dump, "data"), "dump_data"},
		{m.Profiling != "", "profiling"},
		{m.AICoreNum != "", "session.ge.aicoreNum"},
	} {
		if k.isAsked {
			keys = append(keys, k.key)
		}
	}
	if m.asked.precision {
		key, _ := precisionKey(m.Precision) // it has been checked
		keys = append(keys, key)
	}
	return keys
}

// supersededKeys are parameters that one that was asked for makes void.
func (m *merger) supersededKeys() (keys []string) {
	if !m.asked.precision {
		return nil
	}
	chosen, _ := precisionKey(m.Precision)
	for _, option := range precisionKeys {
		if key := precisionPrefix + option; key != chosen {
			keys = append(keys, key)
		}
	}
	return keys
}

// wantedEntry is the wanted config's entry of a parameter, or nil.
func (m *merger) wantedEntry(key string) *configgen.Value {
	for _, v := range m.wanted.Root.Values("parameters") {
		if v.Message.Field("key").Values[0].Scalar == key {
			return v
		}
	}
	return nil
}
