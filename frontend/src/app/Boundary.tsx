import { Component, type ReactNode } from "react";
import * as texts from "~/texts/app";
import { Button, Empty, Page } from "~/ui";

/** Contains the failure of one page; another address renders again. */
export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override componentDidMount() {
    window.addEventListener("popstate", this.reset);
    window.addEventListener("pushState", this.reset);
  }

  override componentWillUnmount() {
    window.removeEventListener("popstate", this.reset);
    window.removeEventListener("pushState", this.reset);
  }

  private readonly reset = () => this.setState({ broken: false });

  override render() {
    if (!this.state.broken) return this.props.children;
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
