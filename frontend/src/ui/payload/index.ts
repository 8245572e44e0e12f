export { howKept, howToRead, isUnreadable } from "./access";
export { Payload, type PayloadProps } from "./Payload";
