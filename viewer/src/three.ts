/**
 * The parts of three that H5Web and the page use, in place of all of it, which would be bundled because @react-three/fiber takes the whole
 * module as an object. The elements of `.tsx` modules (`<mesh>`, `<lineLoop>`, …) are the classes of this list.
 */

// What @react-three/fiber makes itself.
export {
  ACESFilmicToneMapping, AmbientLight, BasicShadowMap, Camera, Clock, ColorManagement, Layers, NoToneMapping, Object3D, OrthographicCamera, PCFShadowMap,
  PCFSoftShadowMap, PerspectiveCamera, Raycaster, RGBAFormat, Scene, UnsignedByteType, VSMShadowMap, Vector2, Vector3, WebGLRenderer,
} from "three";

// What H5Web names in its code, and the wide lines of three.
export {
  Box2, Box3, BufferAttribute, BufferGeometry, ClampToEdgeWrapping, Color, Data3DTexture, DataTexture, DoubleSide, Float32BufferAttribute, FloatType, HalfFloatType,
  InstancedBufferGeometry, InstancedInterleavedBuffer, InterleavedBufferAttribute, Line3, LinearFilter, MathUtils, Matrix4, NearestFilter, RedFormat, ShaderLib,
  Sphere, UVMapping, UniformsLib, UniformsUtils, Vector4, WireframeGeometry,
} from "three";

// Elements of H5Web and of the page.
export { AdditiveBlending, Group, LineBasicMaterial, LineLoop, LineSegments, Mesh, NormalBlending, PlaneGeometry, Points, ShaderMaterial } from "three";
