import { Component, type ReactNode } from "react";
import * as texts from "~/texts/app";
import { Button, Empty, Page } from "~/ui";

/** Error boundary of one page. Navigation resets it. */
export class Boundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override componentDidMount() {
    window.addEventListener("popstate", this.reset);
    window.addEventListener("pushState", this.reset);
  }

  override componentWillUnmount() {
    window.removeEventListener("popstate", this.reset);
    window.removeEventListener("pushState", this.reset);
  }

  private readonly reset = () => this.setState({ hasFailed: false });

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return (
      <Page title={texts.pageFailed}>
        <Empty title={texts.pageFailedTitle}>{texts.pageFailedHint}</Empty>
        <p>
          <Button icon="operations" look="primary" onClick={() => window.location.reload()}>
            {texts.reload}
          </Button>
        </p>
      </Page>
    );
  }
}
