export { Payload, type PayloadProps } from "./Payload";
