package eval
import ("testing";"github.com/npuctl/npuctl/onnx/schema")
func TestZZS(t *testing.T){
 for _,d:=range schema.Domains(){ for _,n:=range schema.Names(d){
  vs:=schema.Versions(d,n); rows:=table()[operatorKey{schema.CanonicalDomain(d),n}]
  if len(rows)==0 {t.Logf("missing %q %s %v",d,n,vs); continue}
  if rows[0].since>vs[0] {t.Logf("%q %s from %d, schema from %d",d,n,rows[0].since,vs[0])}
  if rows[0].since<vs[0] {t.Logf("early %q %s from %d, schema from %d",d,n,rows[0].since,vs[0])}
 }}
}
