import os, time, sys
os.environ["XLA_FLAGS"]="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"]="cpu"
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
from jax import lax
def noise(shape, dt): 
    n=int(np.prod(shape)); i=np.arange(n); return jnp.asarray((((i*7919+13)%10007)/5003.0-1.0).reshape(shape), dt)
def tm(f,*a):
    f=jax.jit(f); jax.block_until_ready(f(*a)); b=1e9; t0=time.perf_counter()
    while time.perf_counter()-t0<0.5:
        s=time.perf_counter(); jax.block_until_ready(f(*a)); b=min(b,time.perf_counter()-s)
    return b*1e6
def row(name,dt,steps,us): print(f"{name+' '+('f32' if dt==jnp.float32 else 'f64'):<36} {us:10.1f} {us*1e3/steps:10.1f}", flush=True)
F=[jnp.float32,jnp.float64]
want=sys.argv[1] if len(sys.argv)>1 else None
def vec(column):
    for n in [8,16,32,64]:
        a,b=(n,1) if column else (1,n)
        w=noise((n,n),jnp.float32)*0.1; c=noise((a,b),jnp.float32); xs=noise((1000,a,b),jnp.float32)
        def f(w,c,xs):
            def step(c,x):
                c=((w@c if column else c@w)+x)*jnp.float32(0.5); return c,c
            return lax.scan(step,c,xs)[1]
        row(f"{'column' if column else 'row'} {n}",jnp.float32,1000,tm(f,w,c,xs))
def system(steps,dt):
    return [jnp.array(x,dt) for x in ([[1,.1],[0,1]],[[3e-4,5e-3],[5e-3,.1]],[[1.,0]],[[.25]])],[jnp.zeros((2,1),dt),jnp.array([[10.,0],[0,10]],dt)],noise((steps,1,1),dt)
def filt(m,s,zs):
    f,q,h,r=m
    def step(c,z):
        x,p=c; x=f@x; p=f@p@f.T+q; hp=h@p; sg=hp@h.T+r; g=hp.T/sg; x=x+g*(z-h@x); p=p-g@hp
        return (x,p),x
    return lax.scan(step,tuple(s),zs)[1]
def kalman():
    for dt in F: row("kalman",dt,10000,tm(filt,*system(10000,dt)))
    for dt in F: row("kalman gradient",dt,1000,tm(jax.grad(lambda m,s,z: (filt(m,s,z)**2).sum(),argnums=(0,1,2)),*system(1000,dt)))
def batch():
    for dt in F:
        m,s,_=system(1,dt); zs=noise((16,1000,1,1),dt)
        row("kalman, 16 series",dt,1000,tm(jax.vmap(filt,in_axes=(None,None,0)),m,s,zs))
def numbers():
    for dt in F:
        def f(xs):
            def step(c,x):
                c=c*jnp.asarray(0.9,dt)+x; return c,c
            return lax.scan(step,jnp.zeros(1,dt),xs)[1]
        row("numbers",dt,131072,tm(f,noise((131072,1),dt)))
def rec():
    for dt in F:
        w=noise((64,64),dt)*0.1
        def loss(w,u,c,xs):
            def step(c,x):
                c=jnp.tanh(c@w+x@u); return c,c
            return (lax.scan(step,c,xs)[1]**2).sum()
        row("tanh 64 gradient",dt,200,tm(jax.grad(loss,argnums=(0,1,2,3)),w,w,noise((1,64),dt),noise((200,1,64),dt)))
for n,f in [("columns",lambda:vec(True)),("rows",lambda:vec(False)),("kalman",kalman),("batch",batch),("numbers",numbers),("recurrent",rec)]:
    if want in (None,n): f()
